/** A change of the index: it replaces what the index has for the word and the document. */
public class Change {
    public String word;
    public long number;
    public String document;
    /** A JSON array. */
    public String positions;
    public long documents;

    public Change() {}

    public Change(String word, long number, String document, String positions, long documents) {
        this.word = word;
        this.number = number;
        this.document = document;
        this.positions = positions;
        this.documents = documents;
    }
}
