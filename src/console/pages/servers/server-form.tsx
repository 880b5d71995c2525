import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Check } from '../../ui/forms/check.tsx'
import { Combobox } from '../../ui/forms/combobox.tsx'
import { SelectField, TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { findChatModels } from '../steps/use-models.ts'
import { Checklist } from './checklist.tsx'
import type { OwnServer } from './own-server.ts'
import { formText as text } from './text.ts'
import { type ServerBody, type ServerChanges, serversChanged } from './use-servers.ts'

/** A server as a person typed it. */
interface Draft {
  readonly name: string
  readonly model: string | undefined
  readonly url: string
  readonly upstream: string
  readonly key: string
  readonly dropsKey: boolean
  readonly place: 'india' | 'global'
}

const draftOf = (server: OwnServer | null): Draft => ({
  name: server?.name ?? '',
  model: server?.model,
  url: server?.base_url ?? '',
  upstream: server?.upstream_model ?? '',
  key: '',
  dropsKey: false,
  place: server?.residency ?? 'global',
})

/** Returns what is sent to register or test a server. Null while something is missing. */
function bodyOf({ name, model, url, upstream, key, place }: Draft): ServerBody | null {
  if (model === undefined || url.trim() === '' || upstream.trim() === '') return null
  return {
    name: name.trim(),
    model,
    base_url: url.trim(),
    upstream_model: upstream.trim(),
    ...(key.trim() === '' ? {} : { key: key.trim() }),
    ...(place === 'global' ? {} : { residency: place }),
  }
}

/** Returns the fields that differ from the registered server. */
function changesOf(draft: Draft, server: OwnServer): ServerChanges {
  const before = draftOf(server)
  const [name, url, upstream, key] = [draft.name.trim(), draft.url.trim(), draft.upstream.trim(), draft.key.trim()]
  return {
    ...(name === before.name ? {} : { name }),
    ...(draft.model === undefined || draft.model === before.model ? {} : { model: draft.model }),
    ...(url === before.url ? {} : { base_url: url }),
    ...(upstream === before.upstream ? {} : { upstream_model: upstream }),
    ...(draft.dropsKey ? { key: null } : key === '' ? {} : { key }),
    ...(draft.place === before.place ? {} : { residency: draft.place }),
  }
}

interface ServerFormProps {
  /** Null: a new server. */
  readonly server: OwnServer | null
  readonly onClose: () => void
  readonly onSaved: (id: number) => void
}

/** The form for a server. A test saves nothing, and what was typed stays when the gateway refuses it. */
export function ServerForm({ server, onClose, onSaved }: ServerFormProps) {
  const [draft, setDraft] = useState(() => draftOf(server))
  const body = bodyOf(draft)
  const changes = server === null ? {} : changesOf(draft, server)
  const test = useMutation({ mutationFn: (asked: ServerBody) => api('testCustomEndpoint', { body: asked }) })
  const save = useMutation({
    mutationFn: async (asked: ServerBody) =>
      server === null ? api('createCustomEndpoint', { body: asked }) : api('changeCustomEndpoint', { path: { id: server.id }, body: changes }),
    onSuccess: async ({ endpoint }) => {
      await serversChanged()
      toast(server === null ? text.made(endpoint.name, endpoint.provider_ref) : text.changed)
      onSaved(endpoint.id)
    },
  })
  const isBusy = test.isPending || save.isPending
  const isReady = body !== null && draft.name.trim() !== '' && !isBusy && (server === null || Object.keys(changes).length > 0)
  const failed = save.error ?? test.error
  return (
    <Dialog
      title={server === null ? text.title : text.changeTitle(server.name)}
      width="lg"
      onClose={onClose}
      onSubmit={() => {
        if (isReady) save.mutate(body)
      }}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {server === null && (
            <Button
              isBusy={test.isPending}
              disabled={body === null || isBusy}
              onClick={() => {
                save.reset()
                if (body !== null) test.mutate({ ...body, name: body.name === '' ? 'test' : body.name })
              }}
            >
              {text.test}
            </Button>
          )}
          <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isReady}>
            {server === null ? text.act : text.save}
          </Button>
        </>
      }
    >
      <Fields draft={draft} server={server} onChange={setDraft} />
      {failed && <InlineError error={apiErrorOf(failed)} />}
      {test.data && !test.isPending && (
        <section className="test-found" aria-label={text.test} role="status">
          <p>{test.data.ok ? text.testOk : text.testFailed}</p>
          <Checklist compliance={test.data.compliance} />
        </section>
      )}
    </Dialog>
  )
}

interface FieldsProps {
  readonly draft: Draft
  readonly server: OwnServer | null
  readonly onChange: (draft: Draft) => void
}

function Fields({ draft, server, onChange }: FieldsProps) {
  const field = (name: 'name' | 'url' | 'upstream', label: string, placeholder: string, hint?: string) => (
    <TextField
      label={label}
      hint={hint}
      placeholder={placeholder}
      maxLength={name === 'name' ? 100 : 500}
      value={draft[name]}
      onChange={event => onChange({ ...draft, [name]: event.target.value })}
    />
  )
  const mask = server?.key_mask ?? null
  return (
    <>
      {field('name', text.name, text.namePlaceholder)}
      <Combobox
        label={text.model}
        hint={text.modelHint}
        placeholder={text.modelPlaceholder}
        name="served-models"
        value={draft.model === undefined ? [] : [{ value: draft.model, label: draft.model }]}
        onChange={([chosen]) => onChange({ ...draft, model: chosen?.value })}
        search={findChatModels}
      />
      {field('url', text.url, text.urlPlaceholder, text.urlHint)}
      <div className="form-pair">
        {field('upstream', text.upstream, text.upstreamPlaceholder)}
        <SelectField
          label={text.place}
          hint={draft.place === 'india' ? text.placeHint : undefined}
          value={draft.place}
          onChange={event => onChange({ ...draft, place: event.target.value === 'india' ? 'india' : 'global' })}
        >
          <option value="global">{text.places.global}</option>
          <option value="india">{text.places.india}</option>
        </SelectField>
      </div>
      <TextField
        label={text.key}
        hint={mask === null ? text.keyHint : text.keyStays(mask)}
        type="password"
        autoComplete="new-password"
        disabled={draft.dropsKey}
        value={draft.key}
        onChange={event => onChange({ ...draft, key: event.target.value })}
      />
      {mask !== null && <Check label={text.dropKey} isChecked={draft.dropsKey} onChange={dropsKey => onChange({ ...draft, dropsKey })} />}
    </>
  )
}
