import { useMutation, useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { apiQuery } from '../../../api/queries.ts'
import { usePageCommands } from '../../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../../app/me.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Confirm } from '../../../ui/overlays/confirm.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { ownerOf } from '../search.ts'
import { runsChanged, useChangeCaps, type WholeRun } from '../use-runs.ts'
import { RaiseCaps } from './raise-caps.tsx'
import { text } from './run-text.ts'

/** Returns whether the gateway lets the person act on the run: its agent or key is theirs, or they are an owner or admin. */
function useMayAct({ agent_id: agentId, key_id: keyId }: WholeRun): boolean {
  const me = useMe()
  const isAdmin = hasRole(me, 'admin')
  const agent = useQuery({ ...apiQuery('getAgentConsole', { path: { id: agentId ?? 0 } }), enabled: !isAdmin && agentId !== null })
  const keys = useQuery({ ...apiQuery('listKeys', { query: { q: String(keyId), limit: 100 } }), enabled: !isAdmin && keyId !== null })
  if (isAdmin) return agentId !== null || keyId !== null
  if (agentId !== null) return agent.data !== undefined && agent.data.owner_uid === me.user.id
  return keys.data?.keys.some(({ id, owner }) => id === keyId && owner?.uid === me.user.id) ?? false
}

/** Hold or resume, the caps, and the end. An ended run has none of them. */
export function RunActs({ run }: { readonly run: WholeRun }) {
  const [dialog, setDialog] = useState<'caps' | 'end' | null>(null)
  const mayAct = useMayAct(run) && run.state !== 'ended'
  const isHeld = run.state === 'held'
  usePageCommands(
    useMemo(
      () =>
        mayAct
          ? [
              { id: 'run-caps', label: isHeld ? text.raise : text.caps, group: 'Run', icon: 'edit' as const, keys: 'e', run: () => setDialog('caps') },
              { id: 'run-end', label: `${text.end}…`, group: 'Run', icon: 'stop' as const, run: () => setDialog('end') },
            ]
          : [],
      [mayAct, isHeld],
    ),
  )
  if (!mayAct) return null
  return (
    <>
      <HoldButton run={run} />
      <Button {...(isHeld ? { look: 'primary' as const } : {})} icon="edit" onClick={() => setDialog('caps')}>
        {isHeld ? text.raise : text.caps}
      </Button>
      <Button look="danger" icon="stop" onClick={() => setDialog('end')}>
        {text.endAct}
      </Button>
      {dialog === 'caps' && <RaiseCaps run={run} onClose={() => setDialog(null)} />}
      {dialog === 'end' && <EndRun run={run} onClose={() => setDialog(null)} />}
    </>
  )
}

/**
 * Holds the run with a cap at the calls that it has made, or gives that cap back to its agent or key. A run that another cap holds has no such button.
 * Decision 0859 says why.
 */
function HoldButton({ run }: { readonly run: WholeRun }) {
  const isHeld = run.state === 'held'
  const change = useChangeCaps(run, ({ state }) => toast(isHeld ? text.resumedToast(state === 'held') : text.heldToast))
  const more = run.increase_calls ?? 0
  const isHeldByCalls = isHeld && run.max_calls !== null && run.calls >= run.max_calls + more
  const most = run.calls - more
  if (isHeld ? !isHeldByCalls : most < 1) return null
  return (
    <Button
      icon={isHeld ? 'play' : 'pause'}
      isBusy={change.isPending}
      onClick={() => change.mutate({ max_calls: isHeld ? null : most }, { onError: error => toast(apiErrorOf(error).message, 'bad') })}
    >
      {isHeld ? text.resume : text.hold}
    </Button>
  )
}

function EndRun({ run, onClose }: { readonly run: WholeRun; readonly onClose: () => void }) {
  const end = useMutation({
    mutationFn: () => api('endRunConsole', { path: { id: run.run_id }, query: ownerOf(run) }),
    onSuccess: async () => {
      await runsChanged()
      toast(text.endedToast)
      onClose()
    },
  })
  return (
    <Confirm
      title={text.end}
      act={text.endAct}
      isBusy={end.isPending}
      error={end.error && apiErrorOf(end.error)}
      onConfirm={() => end.mutate()}
      onClose={onClose}
    >
      <p>{text.endAbout}</p>
    </Confirm>
  )
}
