import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.types.Row;

/** Between the classes of the source and the sinks and the rows of PyFlink. */
public final class Rows {
    private Rows() {}

    /** What Python gets. */
    public static class OfDocuments implements MapFunction<Document, Row> {
        @Override
        public Row map(Document document) {
            return Row.of(document.name, document.text);
        }
    }

    /** What Python gives. */
    public static class ToChanges implements MapFunction<Row, Change> {
        @Override
        public Change map(Row row) {
            return new Change(
                    (String) row.getField(0),
                    (Long) row.getField(1),
                    (String) row.getField(2),
                    (String) row.getField(3),
                    (Long) row.getField(4));
        }
    }
}
