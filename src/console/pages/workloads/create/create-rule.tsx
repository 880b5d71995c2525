import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { invalidate } from '../../../api/queries.ts'
import { useMe } from '../../../app/me.tsx'
import { Code } from '../../../ui/data/code.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Fold } from '../../../ui/forms/choices.tsx'
import { Combobox, type ComboOption } from '../../../ui/forms/combobox.tsx'
import { NumberField, TextAreaField, TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { snippetOf } from '../snippets.ts'
import { text } from '../text.ts'
import { findAgents, findFullKeys, type TrustBody } from '../use-trust.ts'
import { type Advanced, advancedBody, claimsOf, emptyAdvanced, jwksOf } from './advanced.ts'
import { PlatformFields } from './platform-fields.tsx'
import { conditionsOf, emptyWorkload } from './platforms.ts'

/** The form for a new rule, by platform. After it comes what the person pastes at the platform. */
export function CreateRule({ onClose }: { readonly onClose: () => void }) {
  const [workload, setWorkload] = useState(emptyWorkload)
  const [agent, setAgent] = useState<readonly ComboOption[]>([])
  const [key, setKey] = useState<readonly ComboOption[]>([])
  const [name, setName] = useState('')
  const [advanced, setAdvanced] = useState(emptyAdvanced)
  const make = useMutation({ mutationFn: (body: TrustBody) => api('createTrust', { body }), onSuccess: () => invalidate('listTrust') })
  if (make.data) return <Made rule={make.data} onClose={onClose} />
  const conditions = conditionsOf(workload)
  const more = advancedBody(advanced)
  const [agentId, keyId] = [agent[0]?.value, key[0]?.value]
  const body =
    conditions === null || more === null || agentId === undefined || keyId === undefined
      ? null
      : { ...conditions, ...(name.trim() === '' ? {} : { name: name.trim() }), agent_id: Number(agentId), key_id: Number(keyId), ...more }
  return (
    <Dialog
      title={text.create}
      onClose={onClose}
      onSubmit={() => body !== null && !make.isPending && make.mutate(body)}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={make.isPending} disabled={body === null}>
            {text.createAct}
          </Button>
        </>
      }
    >
      <PlatformFields value={workload} onChange={changes => setWorkload(before => ({ ...before, ...changes }))} />
      {conditions !== null && (
        <p className="rule-preview">
          {text.fields.preview} <code>{conditions.subject}</code>
        </p>
      )}
      <Combobox label={text.fields.agent} placeholder={text.fields.agentHint} name="trust agents" value={agent} onChange={setAgent} search={findAgents} />
      <Combobox
        label={text.fields.key}
        hint={text.fields.keyAbout}
        placeholder={text.fields.keyHint}
        name="trust keys"
        value={key}
        onChange={setKey}
        search={findFullKeys}
      />
      <TextField
        label={text.fields.name}
        placeholder={conditions?.name ?? ''}
        isOptional
        maxLength={100}
        value={name}
        onChange={event => setName(event.target.value)}
      />
      <Fold title={text.fields.advanced} hint={text.fields.advancedHint}>
        <AdvancedFields value={advanced} onChange={changes => setAdvanced(before => ({ ...before, ...changes }))} />
      </Fold>
      {make.error && <InlineError error={apiErrorOf(make.error)} />}
    </Dialog>
  )
}

function Made({ rule, onClose }: { readonly rule: Parameters<typeof snippetOf>[0] & { readonly name: string }; readonly onClose: () => void }) {
  return (
    <Dialog
      title={text.made(rule.name)}
      width="lg"
      onClose={onClose}
      actions={
        <Button look="primary" onClick={onClose}>
          {text.done}
        </Button>
      }
    >
      <p>{text.madeAbout}</p>
      <Code text={snippetOf(rule, location.origin)} />
    </Dialog>
  )
}

interface AdvancedFieldsProps {
  readonly value: Advanced
  readonly onChange: (changes: Partial<Advanced>) => void
}

function AdvancedFields({ value, onChange }: AdvancedFieldsProps) {
  const ownAudience = `${location.origin}/orgs/${useMe().org.id}`
  const { fields } = text
  return (
    <>
      <TextField
        label={fields.audience}
        placeholder={ownAudience}
        maxLength={500}
        value={value.audience}
        onChange={event => onChange({ audience: event.target.value })}
      />
      <TextAreaField
        label={fields.claims}
        hint={fields.claimsHint}
        rows={3}
        value={value.claims}
        error={claimsOf(value.claims) === null ? fields.claimsError : null}
        onChange={event => onChange({ claims: event.target.value })}
      />
      <TextField label={fields.scope} hint={fields.scopeHint} maxLength={200} value={value.scope} onChange={event => onChange({ scope: event.target.value })} />
      <NumberField label={fields.ttl} placeholder="900" maxLength={6} value={value.ttl} onChange={event => onChange({ ttl: event.target.value })} />
      <TextAreaField
        label={fields.jwks}
        hint={fields.jwksHint}
        rows={3}
        value={value.jwks}
        error={value.jwks.trim() !== '' && jwksOf(value.jwks) === null ? fields.jwksError : null}
        onChange={event => onChange({ jwks: event.target.value })}
      />
    </>
  )
}
