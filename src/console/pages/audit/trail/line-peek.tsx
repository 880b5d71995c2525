import { curlOf } from '../../../api/call.ts'
import { useMe } from '../../../app/me.tsx'
import { Code } from '../../../ui/data/code.tsx'
import { Facts } from '../../../ui/data/facts.tsx'
import { exactTime } from '../../../ui/format/dates.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Fold } from '../../../ui/forms/choices.tsx'
import { Peek } from '../../../ui/overlays/peek.tsx'
import type { AuditFilters } from '../search.ts'
import { text } from '../text.ts'
import type { AuditLine } from '../use-audit.ts'
import { ActOutcome } from './act-outcome.tsx'
import { actorText, sentenceOf } from './sentences.ts'

interface LinePeekProps {
  /** Null when the line is not among those that were read. */
  readonly line: AuditLine | null
  readonly onFilter: (filters: AuditFilters) => void
  readonly onClose: () => void
}

/** One line beside the list: the sentence, and all that is kept of the act. */
export function LinePeek({ line, onFilter, onClose }: LinePeekProps) {
  const ownId = useMe().user.id
  if (line === null)
    return (
      <Peek title={text.peek.title} onClose={onClose}>
        <p className="quiet">{text.peek.notLoaded}</p>
      </Peek>
    )
  const { kind, id } = line.actor
  const actor = id === null ? kind : `${kind}:${id}`
  return (
    <Peek
      title={sentenceOf(line, ownId)}
      subtitle={<code>{line.id}</code>}
      onClose={onClose}
      actions={
        <>
          <Button icon="filter" onClick={() => onFilter({ actor })}>
            {text.peek.byActor}
          </Button>
          <Button icon="filter" onClick={() => onFilter({ act: line.act })}>
            {text.peek.byAct}
          </Button>
        </>
      }
    >
      <Facts
        facts={[
          [text.peek.outcome, <ActOutcome key="outcome" outcome={line.outcome} />],
          [text.peek.who, `${actorText(line.actor, null)}${id === null ? '' : ` (${actor})`}`],
          [text.peek.act, <code key="act">{line.act}</code>],
          [text.peek.target, line.target === null ? '–' : <code key="target">{line.target}</code>],
          [text.peek.when, exactTime(line.at)],
          [text.peek.address, line.source_ip === null ? '–' : <code key="address">{line.source_ip}</code>],
          [text.peek.request, line.request_id === null ? '–' : <code key="request">{line.request_id}</code>],
        ]}
      />
      <Fold title="Show as curl">
        <Code text={curlOf('audit', { query: { actor, act: line.act } })} />
      </Fold>
    </Peek>
  )
}
