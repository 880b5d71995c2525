import { useMutation } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { text } from './text.ts'
import { type Agent, agentsChanged, useAgent } from './use-agents.ts'

const namedMax = 5

interface EndAgentProps {
  readonly agent: Pick<Agent, 'id' | 'name' | 'active_children'>
  readonly onClose: () => void
}

/** Asks before an agent ends. It names the children and the running calls that end with it, as they are now. */
export function EndAgent({ agent, onClose }: EndAgentProps) {
  const family = useAgent(agent.id)
  const childCount = family.data?.active_children ?? agent.active_children
  const names = (family.data?.children ?? []).slice(0, namedMax).map(({ name }) => name)
  const end = useMutation({
    mutationFn: () => api('revokeAgentConsole', { path: { id: agent.id } }),
    onSuccess: async () => {
      await agentsChanged()
      toast(text.endedToast(agent.name, childCount))
      onClose()
    },
  })
  const [before, after] = text.endAbout(childCount)
  return (
    <Confirm
      title={text.endTitle}
      act={text.endAgent}
      nameToType={agent.name}
      isBusy={end.isPending}
      error={end.error && apiErrorOf(end.error)}
      onConfirm={() => end.mutate()}
      onClose={onClose}
    >
      <p>
        {before}
        <strong>{agent.name}</strong>
        {after}
      </p>
      {names.length > 0 && <p>{text.endChildren(names, childCount)}</p>}
      {family.data && <p>{text.endRunning(family.data.running_requests)}</p>}
      <p>
        {text.endKept} {text.pauseInstead}
      </p>
    </Confirm>
  )
}
