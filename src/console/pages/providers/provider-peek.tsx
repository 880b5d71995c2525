import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { curlOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { askSentence } from '../../app/whom-to-ask.ts'
import { Code } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Status } from '../../ui/data/status.tsx'
import { DateOnly, Time } from '../../ui/data/time.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Check } from '../../ui/forms/check.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import type { OwnKey, ProviderRow } from './search.ts'
import { formText, stateOf, text } from './text.ts'
import { useRemoveKey, useSaveKey, useTestKey } from './use-providers.ts'

interface ProviderPeekProps {
  /** Null: there is no such provider. */
  readonly row: ProviderRow | null
  readonly isOwner: boolean
  readonly owners: readonly string[]
  readonly onReplace: (id: string) => void
  readonly onClose: () => void
}

/** One provider beside the list: its state in words, and the key of the organisation with its test. */
export function ProviderPeek({ row, ...rest }: ProviderPeekProps) {
  if (row !== null) return <KnownProvider row={row} {...rest} />
  return (
    <Peek title={text.title} onClose={rest.onClose}>
      <p className="quiet">{text.unknown}</p>
    </Peek>
  )
}

function KnownProvider({ row, isOwner, owners, onReplace, onClose }: ProviderPeekProps & { readonly row: ProviderRow }) {
  const { id, name, own, accepting, missing, isUntried, isConfigured } = row
  const [isRemoving, setRemoving] = useState(false)
  const test = useTestKey(id)
  const { tone, icon, name: state, means } = stateOf(row)
  return (
    <Peek
      title={name}
      subtitle={<code>{id}</code>}
      onClose={onClose}
      actions={
        isOwner &&
        accepting !== null && (
          <>
            {own !== null && (
              <Button icon="check" isBusy={test.isPending} onClick={() => test.mutate()}>
                {text.test}
              </Button>
            )}
            <Button icon={own === null ? 'plus' : 'rotate'} look={own === null ? 'primary' : 'plain'} onClick={() => onReplace(id)}>
              {own === null ? text.add : text.replace}
            </Button>
            {own !== null && (
              <Button look="danger" icon="trash" onClick={() => setRemoving(true)}>
                {text.remove}
              </Button>
            )}
          </>
        )
      }
    >
      <div className="stack-3">
        <p className="provider-state">
          <Status tone={tone} icon={icon}>
            {state}
          </Status>
          <span className="quiet">{means}</span>
        </p>
        {isUntried && (isConfigured || own !== null) && <p className="quiet">{text.untried}</p>}
        {missing.length > 0 && !isConfigured && <p className="quiet">{text.missing(missing)}</p>}
      </div>
      {test.data && (
        <p role="status">
          <Status tone={text.tests[test.data.status].tone}>{text.tests[test.data.status].text}</Status>
        </p>
      )}
      {own === null ? <p className="quiet">{accepting === null ? text.closed : text.noKey}</p> : <OwnKeyFacts row={row} own={own} />}
      {own !== null && isOwner && <KeyChoices key={own.created_at} row={row} own={own} />}
      {accepting !== null && !isOwner && <p className="quiet">{`Only owners change keys. ${askSentence(owners, 'owner')}`}</p>}
      {own !== null && own.models > 0 && <FoundModels id={id} />}
      {own !== null && (
        <Fold title="Show as curl">
          <Code text={curlOf('testProviderKey', { path: { provider: id } })} />
        </Fold>
      )}
      {isRemoving && <RemoveKey row={row} onClose={() => setRemoving(false)} />}
    </Peek>
  )
}

function OwnKeyFacts({ row, own }: { readonly row: ProviderRow; readonly own: OwnKey }) {
  const facts: readonly (readonly [string, ReactNode])[] = [
    [text.mask, <code key="mask">{own.mask}</code>],
    [
      text.label,
      own.label ?? (
        <span key="label" className="quiet">
          {text.noLabel}
        </span>
      ),
    ],
    [text.found, text.models(own.models)],
    [
      text.accepted,
      own.verified ? (
        <Time key="at" at={own.verified_at} />
      ) : (
        <span key="none" className="quiet">
          {text.unverified}
        </span>
      ),
    ],
    [text.created, <DateOnly key="created" at={own.created_at} />],
    ...Object.entries(own.values ?? {}).map(([name, value]) => [formText.values[name] ?? name, <code key={name}>{value}</code>] as const),
  ]
  return (
    <section className="stack-3" aria-label={`${text.own}: ${row.name}`}>
      <h3>{text.own}</h3>
      <Facts facts={facts} />
    </section>
  )
}

/** Label and order of the saved key. The key itself is not sent. */
function KeyChoices({ row: { id, name }, own }: { readonly row: ProviderRow; readonly own: OwnKey }) {
  const [label, setLabel] = useState(own.label ?? '')
  const order = useSaveKey(id, saved => toast(saved.always_use ? text.alwaysOn(name) : text.alwaysOff(name)))
  const named = useSaveKey(id, () => toast(text.labelSaved))
  const typed = label.trim() === '' ? null : label.trim()
  const failed = order.error ?? named.error
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (typed !== own.label && !named.isPending) named.mutate({ label: typed })
      }}
    >
      <Check
        label={text.always}
        hint={text.alwaysHint}
        isChecked={order.isPending ? (order.variables.always_use ?? own.always_use) : own.always_use}
        onChange={isChecked => !order.isPending && order.mutate({ always_use: isChecked })}
      />
      <TextField label={text.label} hint={text.labelHint} maxLength={100} value={label} onChange={event => setLabel(event.target.value)} />
      {failed && <InlineError error={apiErrorOf(failed)} />}
      <div>
        <Button type="submit" isBusy={named.isPending} disabled={typed === own.label}>
          {text.save}
        </Button>
      </div>
    </form>
  )
}

const shownMax = 50

/** The models that the key was found to reach. They are read when a person wants to see them. */
function FoundModels({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false)
  const found = useQuery({ ...apiQuery('listProviderKeyModels', { path: { provider: id } }), enabled: isOpen })
  return (
    <details className="fold" onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>
        <span>{text.found}</span>
        <span className="fold-hint">{text.callThem}</span>
      </summary>
      <div className="fold-body">
        {isOpen && (
          <Loaded query={found}>
            {({ models }) => (
              <ul className="found-models">
                {models.slice(0, shownMax).map(model => (
                  <li key={model}>
                    <code>{model}</code>
                  </li>
                ))}
                {models.length > shownMax && <li className="quiet">{text.more(models.length - shownMax)}</li>}
              </ul>
            )}
          </Loaded>
        )}
      </div>
    </details>
  )
}

function RemoveKey({ row, onClose }: { readonly row: ProviderRow; readonly onClose: () => void }) {
  const remove = useRemoveKey(row, onClose)
  return (
    <Confirm
      title={text.removeTitle}
      act={text.remove}
      nameToType={row.id}
      isBusy={remove.isPending}
      error={remove.error && apiErrorOf(remove.error)}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>{text.removeAbout(row.name)}</p>
      <p>{text.removeKeeps}</p>
    </Confirm>
  )
}
