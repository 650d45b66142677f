import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;

/** Rows of a PostgreSQL table; many of them are one statement. */
final class Table implements AutoCloseable {
    private final Connection connection;
    private final PreparedStatement insert;
    private final PreparedStatement note;

    Table(String url, String table) throws SQLException {
        connection = DriverManager.getConnection(url);
        connection.setAutoCommit(false);
        insert =
                connection.prepareStatement(
                        "INSERT INTO " + table + " (word, number, document, positions, documents)"
                                + " SELECT * FROM unnest(?::text[], ?::bigint[], ?::text[],"
                                + " ?::jsonb[], ?::bigint[])");
        note =
                connection.prepareStatement(
                        "INSERT INTO " + table + "_ledger VALUES (?) ON CONFLICT DO NOTHING");
    }

    /** Write rows in a transaction. */
    void write(List<Change> rows) throws SQLException {
        insert(rows);
        connection.commit();
    }

    /** Write rows and a name in a transaction, unless the name is there: then so are the rows. */
    void writeOnce(String name, List<Change> rows) throws SQLException {
        note.setString(1, name);
        if (note.executeUpdate() == 1) {
            insert(rows);
        }
        connection.commit();
    }

    private void insert(List<Change> rows) throws SQLException {
        insert.setArray(1, array("text", rows.stream().map(row -> row.word).toArray()));
        insert.setArray(2, array("bigint", rows.stream().map(row -> row.number).toArray()));
        insert.setArray(3, array("text", rows.stream().map(row -> row.document).toArray()));
        insert.setArray(4, array("text", rows.stream().map(row -> row.positions).toArray()));
        insert.setArray(5, array("bigint", rows.stream().map(row -> row.documents).toArray()));
        insert.executeUpdate();
    }

    private java.sql.Array array(String type, Object[] values) throws SQLException {
        return connection.createArrayOf(type, values);
    }

    @Override
    public void close() throws SQLException {
        connection.close();
    }
}
