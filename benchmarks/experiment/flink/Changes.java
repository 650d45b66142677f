import java.util.Arrays;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;

/** The next change of a word. */
public class Changes extends RichMapFunction<Posting, Change> {
    private transient ValueState<Word> state;

    @Override
    public void open(OpenContext context) {
        var type = Types.POJO(Word.class);
        state = getRuntimeContext().getState(new ValueStateDescriptor<>("word", type));
    }

    @Override
    public Change map(Posting posting) throws Exception {
        Word before = state.value();
        Word after = new Word();
        after.changes = (before == null ? 0 : before.changes) + 1;
        after.documents = before == null ? 0 : before.documents;
        after.documents += (posting.positions.length > 0 ? 1 : 0) - (posting.wasThere ? 1 : 0);
        state.update(after);
        String positions = Arrays.toString(posting.positions);
        return new Change(
                posting.word, after.changes, posting.document, positions, after.documents);
    }
}
