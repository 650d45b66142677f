/** What is kept for each word. */
public class Word {
    public long changes;
    public long documents;
}
