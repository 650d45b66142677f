/** A text, or a new version of it. */
public class Document {
    public String name;
    public String text;

    public Document() {}

    public Document(String name, String text) {
        this.name = name;
        this.text = text;
    }
}
