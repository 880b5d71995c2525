import { type ReactNode, useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { curlOf } from '../../api/call.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { Code } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Status, Tag } from '../../ui/data/status.tsx'
import { DateOnly, Time, useNow } from '../../ui/data/time.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { CopyButton } from '../../ui/forms/copy.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { ConnectWithKey } from './connect-with-key.tsx'
import { actsOf, type KeyAct } from './key-acts.tsx'
import { changesOf, isReady, LimitFields, limitsOf } from './limit-fields.tsx'
import { stateOf, text } from './text.ts'
import { type ApiKey, useChangeKey, useMemberNames } from './use-keys.ts'

interface KeyPeekProps {
  /** Null when the key is not among those that were read. */
  readonly apiKey: ApiKey | null
  readonly onAct: (key: ApiKey, act: KeyAct) => void
  readonly onClose: () => void
}

/** One key beside the list: its state in words, its figures, and its limits. */
export function KeyPeek({ apiKey, onAct, onClose }: KeyPeekProps) {
  if (apiKey === null)
    return (
      <Peek title="Key" onClose={onClose}>
        <p className="quiet">{text.notLoaded}</p>
      </Peek>
    )
  return <KnownKey apiKey={apiKey} onAct={onAct} onClose={onClose} />
}

function KnownKey({ apiKey, onAct, onClose }: KeyPeekProps & { readonly apiKey: ApiKey }) {
  const me = useMe()
  const isAdmin = hasRole(me, 'admin')
  const owners = useOwners()
  const [isConnecting, setConnecting] = useState(false)
  const isWorking = apiKey.state === 'active' || apiKey.state === 'notice'
  const acts = actsOf({ apiKey, isAdmin, isOwn: apiKey.owner?.uid === me.user.id })
  return (
    <Peek
      title={apiKey.name}
      subtitle={
        <>
          <code>{apiKey.prefix}…</code> · id {apiKey.id}
        </>
      }
      onClose={onClose}
      actions={
        (acts.length > 0 || isWorking) && (
          <>
            {isWorking && (
              <Button icon="link" onClick={() => setConnecting(true)}>
                {text.connect}
              </Button>
            )}
            {acts.includes('rotate') && (
              <Button icon="rotate" onClick={() => onAct(apiKey, 'rotate')}>
                {text.rotate}
              </Button>
            )}
            {acts.includes('disable') && (
              <Button icon="pause" onClick={() => onAct(apiKey, 'disable')}>
                {text.disable}
              </Button>
            )}
            {acts.includes('enable') && (
              <Button icon="play" onClick={() => onAct(apiKey, 'enable')}>
                {text.enable}
              </Button>
            )}
            {acts.includes('revoke') && (
              <Button look="danger" icon="trash" onClick={() => onAct(apiKey, 'revoke')}>
                {text.revoke}
              </Button>
            )}
          </>
        )
      }
    >
      <KeyFacts apiKey={apiKey} />
      {isConnecting && <ConnectWithKey offersKey={false} onClose={() => setConnecting(false)} />}
      {isAdmin ? <EditLimits key={apiKey.id} apiKey={apiKey} /> : <p className="quiet">{text.membersOnly(owners)}</p>}
      <Fold title="Show as curl">
        <Code text={curlOf('changeKey', { path: { id: apiKey.id }, body: { budget_inr: apiKey.budget_inr } })} />
        <CopyButton text={String(apiKey.id)} label="Copy id" />
      </Fold>
    </Peek>
  )
}

function KeyFacts({ apiKey }: { readonly apiKey: ApiKey }) {
  const me = useMe()
  const nameOf = useMemberNames(me.user.id)
  const { tone, name, means } = stateOf(apiKey, useNow())
  const facts: readonly (readonly [string, ReactNode])[] = [
    ['Owner', apiKey.owner === null ? 'Operator' : nameOf(apiKey.owner.uid)],
    ['For', <Tag key="for">{apiKey.scope === 'full' ? 'everything' : 'calls'}</Tag>],
    ['Created', <DateOnly key="created" at={apiKey.created_at} />],
    ['Last used', <Time key="used" at={apiKey.last_used_at} />],
    ['Ends', <DateOnly key="ends" at={apiKey.expires_at} none="no end" />],
    ...(apiKey.rotated_at === null ? [] : [['Rotated', <Time key="rotated" at={apiKey.rotated_at} />] as const]),
    ...(apiKey.previous_until === null ? [] : [['Old secret works until', <Time key="until" at={apiKey.previous_until} />] as const]),
  ]
  return (
    <div className="stack-3">
      <p className="key-state">
        <Status tone={tone}>{name}</Status>
        <span className="quiet">{means}</span>
      </p>
      <BudgetBar capInr={apiKey.budget_inr} spentInr={apiKey.spend_month_inr} />
      <Facts facts={facts} />
    </div>
  )
}

/** The form for the limits. What was typed stays while the list is read again, and only what differs is sent. */
function EditLimits({ apiKey }: { readonly apiKey: ApiKey }) {
  const [before, setBefore] = useState(() => limitsOf(apiKey))
  const [limits, setLimits] = useState(before)
  const change = useChangeKey(key => {
    setBefore(limitsOf(key))
    setLimits(limitsOf(key))
    toast(text.savedToast)
  })
  const changes = changesOf(limits, before)
  const isChanged = Object.keys(changes).length > 0
  return (
    <Fold title={text.edit} hint={text.editHint}>
      <form
        className="stack-5"
        noValidate
        onSubmit={event => {
          event.preventDefault()
          if (isChanged && isReady(limits, before)) change.mutate({ id: apiKey.id, changes })
        }}
      >
        <LimitFields value={limits} onChange={setLimits} />
        {change.error && <InlineError error={apiErrorOf(change.error)} />}
        <div>
          <Button look="primary" type="submit" isBusy={change.isPending} disabled={!isChanged || !isReady(limits, before)}>
            {text.save}
          </Button>
        </div>
      </form>
    </Fold>
  )
}
