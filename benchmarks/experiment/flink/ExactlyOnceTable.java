import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.base.VoidSerializer;
import org.apache.flink.streaming.api.functions.sink.legacy.TwoPhaseCommitSinkFunction;

/**
 * Keeps rows in memory until the checkpoint is complete, as the paper's sink does.
 *
 * <p>The rows are in the checkpoint, so that committing is one transaction of PostgreSQL with a
 * name, which may be done again. PREPARE TRANSACTION would wait for the disk twice.
 */
public class ExactlyOnceTable
        extends TwoPhaseCommitSinkFunction<Change, ExactlyOnceTable.Pending, Void> {
    private final String url;
    private final String name;
    private transient Table table;

    /** The rows between two checkpoints. */
    public static class Pending {
        public String id = UUID.randomUUID().toString();
        public List<Change> rows = new ArrayList<>();
    }

    public ExactlyOnceTable(String url, String name) {
        super(
                Types.POJO(Pending.class).createSerializer(new SerializerConfigImpl()),
                VoidSerializer.INSTANCE);
        this.url = url;
        this.name = name;
    }

    @Override
    protected Pending beginTransaction() {
        return new Pending();
    }

    @Override
    protected void invoke(Pending pending, Change change, Context context) {
        pending.rows.add(change);
    }

    @Override
    protected void preCommit(Pending pending) {}

    @Override
    protected void commit(Pending pending) {
        if (pending.rows.isEmpty()) {
            return;
        }
        try {
            if (table == null) {
                table = new Table(url, name);
            }
            table.writeOnce(pending.id, pending.rows);
        } catch (SQLException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    protected void abort(Pending pending) {}

    @Override
    public void close() throws Exception {
        super.close();
        if (table != null) {
            table.close();
        }
    }
}
