import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.util.Collector;

/** What differs from the last version of a document. */
public class Postings extends RichFlatMapFunction<Document, Posting> {
    private static final Pattern WORD = Pattern.compile("[a-z']+");
    private static final int[] NOWHERE = {};
    private transient ValueState<Map<String, int[]>> state;

    @Override
    public void open(OpenContext context) {
        TypeInformation<int[]> places = PrimitiveArrayTypeInfo.INT_PRIMITIVE_ARRAY_TYPE_INFO;
        TypeInformation<Map<String, int[]>> type = Types.MAP(Types.STRING, places);
        state = getRuntimeContext().getState(new ValueStateDescriptor<>("words", type));
    }

    @Override
    public void flatMap(Document document, Collector<Posting> out) throws Exception {
        Map<String, int[]> kept = state.value();
        Map<String, int[]> before = kept == null ? Map.of() : kept;
        Map<String, int[]> now = words(document.text);
        TreeSet<String> all = new TreeSet<>(before.keySet());
        all.addAll(now.keySet());
        for (String word : all) {
            if (!Arrays.equals(before.get(word), now.get(word))) {
                int[] positions = now.getOrDefault(word, NOWHERE);
                boolean wasThere = before.containsKey(word);
                out.collect(new Posting(word, document.name, positions, wasThere));
            }
        }
        state.update(now);
    }

    private static Map<String, int[]> words(String text) {
        Map<String, List<Integer>> found = new HashMap<>();
        Matcher matcher = WORD.matcher(text.toLowerCase(Locale.ROOT));
        for (int place = 0; matcher.find(); place++) {
            found.computeIfAbsent(matcher.group(), word -> new ArrayList<>()).add(place);
        }
        Map<String, int[]> arrays = new HashMap<>();
        found.forEach((w, places) -> arrays.put(w, places.stream().mapToInt(n -> n).toArray()));
        return arrays;
    }
}
