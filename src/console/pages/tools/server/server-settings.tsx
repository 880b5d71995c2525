import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api, type CallOptions } from '../../../api/call.ts'
import { Code } from '../../../ui/data/code.tsx'
import { Facts } from '../../../ui/data/facts.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Fold } from '../../../ui/forms/choices.tsx'
import { TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { authOf, CredentialFields, emptyCredential } from '../register/credential-fields.tsx'
import { TermFields, termsIn, termsOf, termsReady } from '../register/term-fields.tsx'
import { text } from '../text.ts'
import { type ToolServer, toolsChanged } from '../use-tools.ts'

interface ServerSettingsProps {
  readonly server: ToolServer
  readonly isAdmin: boolean
  readonly membersOnly: string
}

/** The settings of a server, and the addresses at which agents reach it. */
export function ServerSettings({ server, isAdmin, membersOnly }: ServerSettingsProps) {
  return (
    <div className="columns-2">
      <Panel title={text.settings.title}>{isAdmin ? <SettingsForm server={server} /> : <p className="quiet">{membersOnly}</p>}</Panel>
      <Panel title={text.settings.callersTitle} note={text.settings.callersNote}>
        <div className="stack-3">
          <Code label={text.settings.merged} text={`${location.origin}/mcp?toolsets=core,tools:${server.slug}`} />
          <Code label={text.settings.alone} text={`${location.origin}/mcp/servers/${server.slug}`} />
        </div>
      </Panel>
    </div>
  )
}

type Change = CallOptions<'changeToolServer'>['body']

/** The form. Only what differs is sent. */
function SettingsForm({ server }: { readonly server: ToolServer }) {
  const [name, setName] = useState(server.name)
  const [url, setUrl] = useState(server.url)
  const [before, setBefore] = useState(() => termsIn(server))
  const [terms, setTerms] = useState(before)
  const [credential, setCredential] = useState({ ...emptyCredential, kind: server.auth.kind })
  const [isReplaced, setReplaced] = useState(false)
  const save = useMutation({
    mutationFn: (body: Change) => api('changeToolServer', { path: { id: server.id }, body }),
    onSuccess: async ({ server: changed }) => {
      const next = termsIn({ ...server, ...changed })
      setBefore(next)
      setTerms(next)
      setReplaced(false)
      setCredential({ ...emptyCredential, kind: changed.auth.kind })
      await toolsChanged()
      toast(text.settings.saved)
    },
  })
  const auth = authOf(credential)
  const body: Change = {
    ...(name.trim() === server.name ? {} : { name: name.trim() }),
    ...(url.trim() === server.url ? {} : { url: url.trim() }),
    ...termsOf(terms, before),
    ...(isReplaced && auth !== undefined ? { auth } : {}),
  }
  const isReady = Object.keys(body).length > 0 && name.trim() !== '' && url.trim() !== '' && termsReady(terms) && (!isReplaced || auth !== undefined)
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (isReady && !save.isPending) save.mutate(body)
      }}
    >
      <TextField label={text.form.name} maxLength={100} value={name} onChange={event => setName(event.target.value)} />
      <TextField label={text.form.url} hint={text.settings.urlHint} inputMode="url" value={url} onChange={event => setUrl(event.target.value)} />
      <TermFields value={terms} onChange={setTerms} />
      <Fold title={text.settings.credential} hint={text.settings.credentialHint}>
        <CredentialNow server={server} />
        <CredentialFields
          value={credential}
          onChange={next => {
            setReplaced(true)
            setCredential(next)
          }}
        />
      </Fold>
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
      <div>
        <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isReady}>
          {text.settings.save}
        </Button>
      </div>
    </form>
  )
}

/** What the server requires now. A secret is only seen as its mask. */
function CredentialNow({ server: { auth } }: { readonly server: ToolServer }) {
  const facts: [string, string][] = [[text.settings.now, text.server.credentials[auth.kind]]]
  if (auth.header_name !== null) facts.push([auth.header_name, auth.header_mask ?? ''])
  if (auth.client_id !== undefined) facts.push([text.form.clientId, auth.client_id], [text.form.issuer, auth.issuer ?? ''])
  if (auth.client_secret_mask) facts.push([text.form.clientSecret, auth.client_secret_mask])
  return <Facts facts={facts} />
}
