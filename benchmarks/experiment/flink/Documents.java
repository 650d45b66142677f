import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;

/**
 * Document n of an endless stream, each when it is due: n / rate seconds after the first.
 *
 * <p>Its position and its beginning are in the checkpoints, so that after a restart documents that
 * became due meanwhile follow at once. The corpus is a file with a text on each line.
 */
public class Documents implements SourceFunction<Document>, CheckpointedFunction {
    private final String corpus;
    private final String began;
    private final double rate;
    private volatile boolean isRunning = true;
    private long next;
    private long beginning;
    private transient ListState<Long> state;

    public Documents(String corpus, String began, double rate) {
        this.corpus = corpus;
        this.began = began;
        this.rate = rate;
    }

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        state =
                context.getOperatorStateStore()
                        .getListState(new ListStateDescriptor<>("position", Types.LONG));
        var found = state.get().iterator();
        if (found.hasNext()) {
            next = found.next();
            beginning = found.next();
        }
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
        state.update(List.of(next, beginning));
    }

    @Override
    public void run(SourceContext<Document> context) throws Exception {
        List<String> texts = Files.readAllLines(Path.of(corpus));
        synchronized (context.getCheckpointLock()) {
            if (beginning == 0) {
                beginning = now();
            }
        }
        tell();
        while (isRunning) {
            long wait = beginning + (long) (next * 1e9 / rate) - now();
            if (wait > 0) {
                LockSupport.parkNanos(wait);
                continue;
            }
            synchronized (context.getCheckpointLock()) {
                long named = next % 5 == 0 ? next / 2 : next;
                String text = texts.get((int) (next % texts.size()));
                context.collect(new Document("d" + named, text));
                next++;
            }
        }
    }

    @Override
    public void cancel() {
        isRunning = false;
    }

    private void tell() throws Exception {
        Path hidden = Path.of(began + ".tmp");
        Files.write(hidden, Double.toString(beginning / 1e9).getBytes(StandardCharsets.UTF_8));
        Files.move(hidden, Path.of(began), StandardCopyOption.ATOMIC_MOVE);
    }

    private static long now() {
        Instant instant = Instant.now();
        return instant.getEpochSecond() * 1_000_000_000L + instant.getNano();
    }
}
