import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../../ui/forms/button.tsx'
import { TextField } from '../../../ui/forms/field.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import type { AgentAct } from '../agent-acts.tsx'
import { text } from '../text.ts'
import { type Agent, agentsChanged } from '../use-agents.ts'
import { changedBy, type FailedAct, runMany } from './run-many.ts'

const words = text.many
const namedMax = 8
const icons = { pause: 'pause', resume: 'play', end: 'trash' } as const

interface ManyProps {
  readonly selected: readonly Agent[]
  readonly onClear: () => void
}

/** What a person can do with the selected agents. It is fixed above the end of the window, so that the list does not move. Decision 0740 says why. */
export function ManyAgents({ selected, onClear }: ManyProps) {
  const [dialog, setDialog] = useState<{ readonly act: AgentAct; readonly agents: readonly Agent[] } | null>(null)
  const open = (act: AgentAct): void => setDialog({ act, agents: selected })
  const offered = (['pause', 'resume'] as const).filter(act => changedBy(act, selected).length > 0)
  return (
    <>
      {selected.length > 0 && (
        <section className="many-bar" aria-label={words.label}>
          <strong className="many-count" aria-live="polite">
            {words.selected(selected.length)}
          </strong>
          {offered.map(act => (
            <Button key={act} size="sm" icon={icons[act]} onClick={() => open(act)}>
              {text[act]}
            </Button>
          ))}
          <Button size="sm" look="danger" icon={icons.end} onClick={() => open('end')}>
            {text.end}
          </Button>
          <Button size="sm" look="ghost" aria-label={words.clear} onClick={onClear}>
            Clear
          </Button>
        </section>
      )}
      {dialog && <ManyDialog act={dialog.act} selected={dialog.agents} onClose={() => setDialog(null)} onDone={onClear} />}
    </>
  )
}

interface ManyDialogProps {
  readonly act: AgentAct
  /** The agents that were selected when the dialog opened. What the list reads later does not change the question. */
  readonly selected: readonly Agent[]
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Asks once for all selected agents, and says what ends. Afterwards it lists each agent for which the act failed. */
function ManyDialog({ act, selected, onClose, onDone }: ManyDialogProps) {
  const agents = changedBy(act, selected)
  const [typed, setTyped] = useState('')
  const [done, setDone] = useState(0)
  const run = useMutation({
    mutationFn: () => runMany(act, agents, setDone),
    onSuccess: async failed => {
      await agentsChanged()
      onDone()
      if (failed.length > 0) return
      toast(words.done[act](agents.length))
      onClose()
    },
  })
  const isMeant = act !== 'end' || typed.trim() === words.typed(agents.length)
  const failed = run.data ?? []
  if (failed.length > 0)
    return (
      <Dialog title={words.titles[act]} width="sm" onClose={onClose} actions={<Button onClick={onClose}>Close</Button>}>
        <Failures act={act} succeeded={agents.length - failed.length} failed={failed} />
      </Dialog>
    )
  return (
    <Dialog
      title={words.titles[act]}
      width="sm"
      isDismissible={!run.isPending}
      onClose={onClose}
      onSubmit={() => isMeant && !run.isPending && run.mutate()}
      actions={
        <>
          <Button disabled={run.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button look={act === 'end' ? 'danger' : 'primary'} type="submit" isBusy={run.isPending} disabled={!isMeant}>
            {words.acts[act](agents.length)}
          </Button>
        </>
      }
    >
      <div className="prose">
        <Question act={act} agents={agents} left={selected.length - agents.length} />
        {run.isPending && (
          <p className="tabular" role="status">
            {words.progress(done, agents.length)}
          </p>
        )}
      </div>
      {act === 'end' && <TextField label={`Type ${words.typed(agents.length)} to confirm`} value={typed} onChange={event => setTyped(event.target.value)} />}
    </Dialog>
  )
}

function Question({ act, agents, left }: { readonly act: AgentAct; readonly agents: readonly Agent[]; readonly left: number }) {
  const childCount = agents.reduce((sum, agent) => sum + agent.active_children, 0)
  return (
    <>
      <p>
        <strong>
          {words.names(
            agents.slice(0, namedMax).map(({ name }) => name),
            agents.length,
          )}
        </strong>
      </p>
      <p>{words.about[act]}</p>
      {act === 'end' && childCount > 0 && <p>{words.children(childCount)}</p>}
      {act === 'end' && (
        <p>
          {text.endKept} {words.pauseInstead}
        </p>
      )}
      {left > 0 && <p>{words.unlike(left)}</p>}
    </>
  )
}

function Failures({ act, succeeded, failed }: { readonly act: AgentAct; readonly succeeded: number; readonly failed: readonly FailedAct[] }) {
  return (
    <div className="prose" role="alert">
      {succeeded > 0 && <p>{words.done[act](succeeded)}</p>}
      <p>{words.failed(failed.length)}</p>
      <ul className="many-failed">
        {failed.map(({ agent, why }) => (
          <li key={agent.id}>
            <strong>{agent.name}</strong> {why}
          </li>
        ))}
      </ul>
    </div>
  )
}
