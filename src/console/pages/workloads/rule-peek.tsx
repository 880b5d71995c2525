import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, curlOf } from '../../api/call.ts'
import { invalidate } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { Code } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { snippetOf } from './snippets.ts'
import { text } from './text.ts'
import { type TrustRule, useAgentName } from './use-trust.ts'

interface RulePeekProps {
  /** Null when the list has no such rule. */
  readonly rule: TrustRule | null
  readonly onClose: () => void
}

/** One rule beside the list, with what is pasted at its platform. */
export function RulePeek({ rule, onClose }: RulePeekProps) {
  if (rule !== null) return <KnownRule rule={rule} onClose={onClose} />
  return (
    <Peek title={text.columns.name} onClose={onClose}>
      <p className="quiet">{text.rule.notLoaded}</p>
    </Peek>
  )
}

function KnownRule({ rule, onClose }: { readonly rule: TrustRule; readonly onClose: () => void }) {
  const isOwner = hasRole(useMe(), 'owner')
  const [isRemoving, setRemoving] = useState(false)
  const agent = useAgentName(rule.agent_id)
  const { facts } = text.rule
  return (
    <Peek
      title={rule.name}
      subtitle={<>id {rule.id}</>}
      onClose={onClose}
      actions={
        isOwner && (
          <Button look="danger" icon="trash" onClick={() => setRemoving(true)}>
            {text.rule.remove}
          </Button>
        )
      }
    >
      <div className="rule-part">
        <Facts
          facts={[
            [facts.issuer, <code key="issuer">{rule.issuer}</code>],
            [facts.audience, <code key="audience">{rule.audience}</code>],
            [facts.subject, <code key="subject">{rule.subject}</code>],
            ...(Object.keys(rule.claims).length === 0
              ? []
              : [
                  [
                    facts.claims,
                    <code key="claims">
                      {Object.entries(rule.claims)
                        .map(pair => pair.join('='))
                        .join(', ')}
                    </code>,
                  ] as const,
                ]),
            [
              facts.agent,
              <Link key="agent" to="/agents/$id" params={{ id: String(rule.agent_id) }}>
                {agent}
              </Link>,
            ],
            [
              facts.key,
              <Link key="key" to="/keys" search={{ key: rule.key_id }}>
                key {rule.key_id}
              </Link>,
            ],
            [facts.scope, rule.scope],
            [facts.life, rule.ttl_s === null ? text.rule.defaultLife : text.rule.seconds(rule.ttl_s)],
            [facts.keys, rule.jwks === null ? (rule.jwks_uri ?? text.rule.fetched) : text.rule.pasted],
          ]}
        />
      </div>
      {!isOwner && <p className="quiet">{text.ownersOnly}</p>}
      <section className="rule-part stack-3">
        <h3 className="tester-head">{text.rule.paste}</h3>
        <Code text={snippetOf(rule, location.origin)} />
      </section>
      <Fold title="Show as curl">
        <Code text={curlOf('deleteTrust', { path: { id: rule.id } })} />
      </Fold>
      {isRemoving && <RemoveRule rule={rule} onClose={() => setRemoving(false)} onRemoved={onClose} />}
    </Peek>
  )
}

function RemoveRule({ rule, onClose, onRemoved }: { readonly rule: TrustRule; readonly onClose: () => void; readonly onRemoved: () => void }) {
  const remove = useMutation({
    mutationFn: () => api('deleteTrust', { path: { id: rule.id } }),
    onSuccess: async () => {
      await invalidate('listTrust')
      toast(text.rule.removed)
      onRemoved()
    },
  })
  return (
    <Confirm
      title={text.rule.remove}
      act={text.rule.remove}
      nameToType={rule.name}
      isBusy={remove.isPending}
      error={remove.error && apiErrorOf(remove.error)}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>{text.rule.removeAbout}</p>
    </Confirm>
  )
}
