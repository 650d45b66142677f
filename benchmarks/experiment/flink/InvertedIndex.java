import java.io.FileReader;
import java.io.Reader;
import java.util.Properties;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * The inverted index of `examples/inverted_index.py` as a job of Flink's DataStream API.
 *
 * <p>{@code java InvertedIndex SETTINGS}: a file of properties, those with a dot are Flink's own.
 */
public final class InvertedIndex {
    private InvertedIndex() {}

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (Reader reader = new FileReader(arguments[0])) {
            settings.load(reader);
        }
        Configuration configuration = new Configuration();
        for (String name : settings.stringPropertyNames()) {
            if (name.contains(".")) {
                configuration.setString(name, settings.getProperty(name));
            }
        }
        var environment = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        double rate = Double.parseDouble(settings.getProperty("rate"));
        String url = settings.getProperty("url");
        String table = settings.getProperty("table");
        var changes =
                environment
                        .addSource(
                                new Documents(
                                        settings.getProperty("corpus"),
                                        settings.getProperty("began"),
                                        rate))
                        .uid("documents")
                        .setParallelism(1)
                        .keyBy(document -> document.name)
                        .flatMap(new Postings())
                        .uid("postings")
                        .keyBy(posting -> posting.word)
                        .map(new Changes())
                        .uid("changes");
        boolean isExactlyOnce = settings.getProperty("guarantee").equals("exactly-once");
        changes.addSink(
                        isExactlyOnce
                                ? new ExactlyOnceTable(url, table)
                                : new PlainTable(url, table))
                .uid("table");
        environment.execute("inverted index");
    }
}
