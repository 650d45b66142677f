import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;

/**
 * Writes rows without a guarantee, as soon as it can.
 *
 * <p>A thread writes what has come since its last transaction in the next one, so that rows wait
 * neither for a full batch nor each for a commit of their own.
 */
public class PlainTable extends RichSinkFunction<Change> {
    private final String url;
    private final String name;
    private transient LinkedBlockingQueue<Change> queue;
    private transient Thread writer;
    private transient volatile Exception failure;
    private transient volatile boolean isOver;

    public PlainTable(String url, String name) {
        this.url = url;
        this.name = name;
    }

    @Override
    public void open(OpenContext context) {
        queue = new LinkedBlockingQueue<>();
        writer = new Thread(this::write, "writer");
        writer.start();
    }

    @Override
    public void invoke(Change change, Context context) throws Exception {
        if (failure != null) {
            throw failure;
        }
        queue.add(change);
    }

    private void write() {
        try (Table table = new Table(url, name)) {
            while (!isOver || !queue.isEmpty()) {
                Change first = queue.poll(100, TimeUnit.MILLISECONDS);
                if (first != null) {
                    List<Change> rows = new ArrayList<>(List.of(first));
                    queue.drainTo(rows);
                    table.write(rows);
                }
            }
        } catch (Exception error) {
            failure = error;
        }
    }

    @Override
    public void close() throws Exception {
        isOver = true;
        if (writer != null) {
            writer.join();
        }
    }
}
