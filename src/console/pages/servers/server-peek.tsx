import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, curlOf } from '../../api/call.ts'
import { Code } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Status } from '../../ui/data/status.tsx'
import { DateOnly, Time } from '../../ui/data/time.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { Checklist, resultOf } from './checklist.tsx'
import type { OwnServer } from './own-server.ts'
import { formText, text } from './text.ts'
import { serversChanged, useRetest } from './use-servers.ts'

interface ServerPeekProps {
  /** Null: there is no such server. */
  readonly server: OwnServer | null
  readonly isAdmin: boolean
  readonly ask: string
  readonly onChange: () => void
  readonly onClose: () => void
}

/** One own server beside the list: how calls reach it, and its last test as a checklist. */
export function ServerPeek({ server, ...rest }: ServerPeekProps) {
  if (server !== null) return <KnownServer server={server} {...rest} />
  return (
    <Peek title={text.title} onClose={rest.onClose}>
      <p className="quiet">{text.unknown}</p>
    </Peek>
  )
}

function KnownServer({ server, isAdmin, ask, onChange, onClose }: ServerPeekProps & { readonly server: OwnServer }) {
  const retest = useRetest(server)
  const [isRemoving, setRemoving] = useState(false)
  const { tone, name } = resultOf(server.compliance)
  const facts: readonly (readonly [string, ReactNode])[] = [
    [text.facts.model, <code key="model">{server.model}</code>],
    [text.facts.address, <code key="url">{server.base_url}</code>],
    [text.facts.upstream, <code key="upstream">{server.upstream_model}</code>],
    [text.facts.place, server.residency === 'india' ? text.india : text.global],
    [text.facts.key, server.key_mask === null ? text.noKey : <code key="mask">{server.key_mask}</code>],
    [text.facts.created, <DateOnly key="created" at={server.created_at} />],
    [text.facts.tested, <Time key="tested" at={server.checked_at} />],
  ]
  const call = `{\n  "model": "${server.model}",\n  "provider": "${server.provider_ref}",\n  "messages": [{ "role": "user", "content": "Hello" }]\n}`
  return (
    <Peek
      title={server.name}
      subtitle={<code>{server.provider_ref}</code>}
      onClose={onClose}
      actions={
        isAdmin && (
          <>
            <Button icon="check" isBusy={retest.isPending} onClick={() => retest.mutate()}>
              {text.retest}
            </Button>
            <Button icon="edit" onClick={onChange}>
              {text.change}
            </Button>
            <Button look="danger" icon="trash" onClick={() => setRemoving(true)}>
              {text.remove}
            </Button>
          </>
        )
      }
    >
      <Facts facts={facts} />
      <section className="stack-3" aria-label={text.checks}>
        <h3 className="server-checks">
          {text.checks} <Status tone={tone}>{name}</Status>
        </h3>
        <Checklist compliance={server.compliance} />
        {!isAdmin && <p className="quiet">{`${text.adminsSeeWhy} ${ask}`}</p>}
      </section>
      <section className="stack-3" aria-label={text.how}>
        <h3>{text.how}</h3>
        <p className="quiet">{text.howAbout}</p>
        <Code text={call} />
      </section>
      {isAdmin && (
        <Fold title="Show as curl">
          <Code text={curlOf('retestCustomEndpoint', { path: { id: server.id } })} />
        </Fold>
      )}
      {isRemoving && <RemoveServer server={server} onClose={() => setRemoving(false)} onRemoved={onClose} />}
    </Peek>
  )
}

interface RemoveServerProps {
  readonly server: OwnServer
  readonly onClose: () => void
  readonly onRemoved: () => void
}

function RemoveServer({ server, onClose, onRemoved }: RemoveServerProps) {
  const remove = useMutation({
    mutationFn: () => api('removeCustomEndpoint', { path: { id: server.id } }),
    onSuccess: async () => {
      await serversChanged()
      toast(text.removed(server.name))
      onRemoved()
    },
  })
  return (
    <Confirm
      title={text.removeTitle}
      act={text.remove}
      nameToType={server.slug}
      isBusy={remove.isPending}
      error={remove.error && apiErrorOf(remove.error)}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>{text.removeAbout(server.name)}</p>
      <p className="quiet">{`${formText.url}: ${server.base_url}`}</p>
    </Confirm>
  )
}
