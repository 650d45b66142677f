/** Where a word stands in a document now; nowhere if it is gone. */
public class Posting {
    public String word;
    public String document;
    public int[] positions;
    public boolean wasThere;

    public Posting() {}

    public Posting(String word, String document, int[] positions, boolean wasThere) {
        this.word = word;
        this.document = document;
        this.positions = positions;
        this.wasThere = wasThere;
    }
}
