import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { Status } from '../../ui/data/status.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { RadioCards } from '../../ui/forms/choices.tsx'
import { SelectField, TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { StepFrame } from './step-frame.tsx'
import { text } from './text.ts'

type Source = 'ready' | 'sandbox' | 'key'
const sandboxId = 'sandbox'

/** The first step: what answers the calls. */
export function ProviderStep({ onNext }: { readonly onNext: () => void }) {
  const providers = useQuery(apiQuery('listProviders'))
  return (
    <Loaded
      query={providers}
      skeleton={
        <StepFrame step="provider" title={text.providerTitle}>
          <Skeleton lines={3} height={48} />
        </StepFrame>
      }
    >
      {({ data }) => <Choice configured={data.filter(({ configured }) => configured)} onNext={onNext} />}
    </Loaded>
  )
}

interface ChoiceProps {
  /** Providers that this gateway can call now. */
  readonly configured: readonly { readonly id: string; readonly name: string }[]
  readonly onNext: () => void
}

function Choice({ configured, onNext }: ChoiceProps) {
  const isOwner = hasRole(useMe(), 'owner')
  const own = useQuery({ ...apiQuery('listProviderKeys'), retry: false })
  const saved = new Set(own.data?.keys.map(({ provider }) => provider))
  const names = [
    ...configured.filter(({ id }) => id !== sandboxId).map(({ name }) => name),
    ...(own.data?.providers ?? []).filter(({ id }) => saved.has(id) && !configured.some(one => one.id === id)).map(({ name }) => name),
  ]
  const hasSandbox = configured.some(({ id }) => id === sandboxId)
  const mayAdd = isOwner && own.data !== undefined && own.data.providers.length > 0
  const options = [
    ...(names.length === 0 ? [] : [{ value: 'ready' as const, label: text.ready(names), hint: text.readyHint }]),
    ...(hasSandbox ? [{ value: 'sandbox' as const, label: text.sandbox, hint: text.sandboxHint }] : []),
    ...(mayAdd ? [{ value: 'key' as const, label: text.ownKey, hint: text.ownKeyHint }] : []),
  ]
  const [chosen, setChosen] = useState<Source>()
  const source = options.find(({ value }) => value === chosen)?.value ?? options[0]?.value
  const [provider, setProvider] = useState('')
  const [key, setKey] = useState('')
  const id = provider === '' ? (own.data?.providers[0]?.id ?? '') : provider
  const save = useMutation({
    mutationFn: () => api('saveProviderKey', { path: { provider: id }, body: { key: key.trim() } }),
    onSuccess: async () => {
      setKey('')
      await invalidate('listProviderKeys', 'listProviders', 'listModels', 'health')
    },
  })
  const isTyping = source === 'key' && save.data === undefined
  const onSubmit = (): void => {
    if (!isTyping) onNext()
    else if (key.trim() !== '' && !save.isPending) save.mutate()
  }
  const nameOf = (one: string): string => own.data?.providers.find(({ id: known }) => known === one)?.name ?? one
  return (
    <StepFrame
      step="provider"
      title={text.providerTitle}
      onSubmit={onSubmit}
      actions={
        <>
          <Button look="primary" type="submit" isBusy={save.isPending} disabled={isTyping && key.trim() === ''}>
            {isTyping ? text.test : text.next}
          </Button>
          {isTyping && (
            <Button look="ghost" onClick={onNext}>
              {text.skip}
            </Button>
          )}
        </>
      }
    >
      {options.length === 0 && <p className="quiet">{text.noneYet}</p>}
      {source !== undefined && <RadioCards label={text.providerChoice} value={source} onChange={setChosen} options={options} />}
      {isTyping && (
        <div className="start-fields">
          <SelectField label={text.provider} value={id} onChange={event => setProvider(event.target.value)}>
            {own.data?.providers.map(one => (
              <option key={one.id} value={one.id}>
                {one.name}
                {one.residency === 'india' ? ' (India)' : ''}
              </option>
            ))}
          </SelectField>
          <TextField label={text.key} hint={text.keyHint} type="password" autoComplete="off" value={key} onChange={event => setKey(event.target.value)} />
        </div>
      )}
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
      {save.data && (
        <p role="status">
          <Status tone="good">{text.saved(nameOf(save.data.provider), save.data.models_discovered)}</Status>
        </p>
      )}
      {!isOwner && <AskOwner />}
      {isOwner && own.isError && <p className="quiet">{text.byokOff}</p>}
    </StepFrame>
  )
}

/** Whom a member asks for a key of a provider. */
function AskOwner() {
  const members = useQuery(apiQuery('listMembers'))
  const owners = (members.data?.members ?? []).filter(({ role }) => role === 'owner').map(({ name, email }) => name ?? email)
  return <p className="quiet">{text.askOwner(owners.slice(0, 3))}</p>
}
