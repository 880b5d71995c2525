import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Fold } from '../../../ui/forms/choices.tsx'
import { TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { text } from '../text.ts'
import { type ServerBody, toolsChanged } from '../use-tools.ts'
import { authOf, CredentialFields, emptyCredential } from './credential-fields.tsx'
import { TermFields, type Terms, termsOf, termsReady, usualTerms } from './term-fields.tsx'
import { TestResult } from './test-result.tsx'

/** The form for another server: name, address and credential. A test reads its tools and saves nothing. */
export function RegisterServer({ onClose }: { readonly onClose: () => void }) {
  const toServer = useNavigate()
  const [name, setName] = useState('')
  const [url, setUrl] = useState('')
  const [slug, setSlug] = useState('')
  const [credential, setCredential] = useState(emptyCredential)
  const [terms, setTerms] = useState<Terms>(usualTerms)
  const test = useMutation({ mutationFn: (body: ServerBody) => api('testToolServer', { body }) })
  const register = useMutation({
    mutationFn: (body: ServerBody) => api('createToolServer', { body }),
    onSuccess: async ({ server, sync }) => {
      await toolsChanged()
      const isForPeople = server.auth.kind === 'oauth_user'
      toast(isForPeople ? text.form.madeForPeople(server.name) : text.form.made(server.name, sync.new))
      void toServer({ to: '/tools/$id', params: { id: server.id }, search: isForPeople ? { tab: 'connections' } : {} })
    },
  })
  const auth = authOf(credential)
  const isTestable = url.trim() !== '' && auth !== undefined && termsReady(terms)
  const bodyOf = (shown: string): ServerBody => ({
    name: shown,
    url: url.trim(),
    ...(auth === undefined || auth.kind === 'none' ? {} : { auth }),
    ...(slug.trim() === '' ? {} : { slug: slug.trim() }),
    ...termsOf(terms, usualTerms),
  })
  const isBusy = test.isPending || register.isPending
  const isReady = isTestable && name.trim() !== '' && !isBusy
  const failed = register.error ?? test.error
  return (
    <Dialog
      title={text.form.title}
      width="lg"
      onClose={onClose}
      onSubmit={() => isReady && register.mutate(bodyOf(name.trim()))}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button isBusy={test.isPending} disabled={!isTestable || isBusy} onClick={() => test.mutate(bodyOf(name.trim() === '' ? 'test' : name.trim()))}>
            {text.form.test}
          </Button>
          <Button look="primary" type="submit" isBusy={register.isPending} disabled={!isReady}>
            {text.form.act}
          </Button>
        </>
      }
    >
      <TextField label={text.form.name} placeholder={text.form.namePlaceholder} maxLength={100} value={name} onChange={event => setName(event.target.value)} />
      <TextField
        label={text.form.url}
        hint={text.form.urlHint}
        placeholder={text.form.urlPlaceholder}
        inputMode="url"
        value={url}
        onChange={event => setUrl(event.target.value)}
      />
      <CredentialFields value={credential} onChange={setCredential} />
      <Fold title={text.form.more} hint={text.form.moreHint}>
        <TextField
          label={text.form.slug}
          hint={text.form.slugHint}
          placeholder={text.form.slugPlaceholder}
          maxLength={16}
          value={slug}
          onChange={event => setSlug(event.target.value)}
        />
        <TermFields value={terms} onChange={setTerms} />
      </Fold>
      {test.data && !failed && <TestResult result={test.data} />}
      {failed && <InlineError error={apiErrorOf(failed)} />}
    </Dialog>
  )
}
