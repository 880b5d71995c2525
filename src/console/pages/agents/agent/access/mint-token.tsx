import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../../api/api-error.ts'
import { api } from '../../../../api/call.ts'
import { apiQuery } from '../../../../api/queries.ts'
import { useMe } from '../../../../app/me.tsx'
import { Code } from '../../../../ui/data/code.tsx'
import { exactTime } from '../../../../ui/format/dates.ts'
import { Button } from '../../../../ui/forms/button.tsx'
import { Check } from '../../../../ui/forms/check.tsx'
import { FieldError, SelectField } from '../../../../ui/forms/field.tsx'
import { InlineError } from '../../../../ui/layout/error-panel.tsx'
import { Loaded } from '../../../../ui/layout/panel.tsx'
import { SecretPanel } from '../../../../ui/overlays/secret-panel.tsx'
import { useMakeKey } from '../../../connect/use-make-key.ts'
import type { TabProps } from '../../agent-tabs.ts'
import { useWhomToAsk } from '../../use-agents.ts'
import { text } from '../text.ts'

const scopes = ['inference', 'memory:read', 'memory:write', 'usage:read', 'tools:call'] as const
type Scope = (typeof scopes)[number]
/** Keys that are read for the choice. There is one page of them, the newest. */
const keysMax = 200

interface BindingKey {
  readonly id: number
  readonly name: string
}

/** The keys of the person that can bind a token: those that work. */
function useBindingKeys() {
  const me = useMe()
  return useQuery({
    ...apiQuery('listKeys', { query: { limit: keysMax } }),
    select: ({ keys }): readonly BindingKey[] =>
      keys.filter(({ owner, state }) => owner !== null && owner.uid === me.user.id && (state === 'active' || state === 'notice')),
  })
}

/** The form for a token, or why there is none. */
export function MintToken({ agent, isMine }: TabProps) {
  const me = useMe()
  const askWhom = useWhomToAsk()
  const keys = useBindingKeys()
  const [isMaking, setMaking] = useState(false)
  if (agent.playground && agent.owner_uid !== me.user.id) return <p className="quiet">{text.notYoursMint}</p>
  if (!isMine) return <p className="quiet">{askWhom(agent)}</p>
  // The list has the new key while its secret is still shown, so the panel stays until the person closes it.
  return (
    <Loaded query={keys}>
      {found => (found.length === 0 || isMaking ? <NoKey agent={agent} onMade={setMaking} /> : <MintForm agent={agent} keys={found} />)}
    </Loaded>
  )
}

/** A token needs a key. One click makes the least one, and its secret is shown once. Decision 0721 says why it may do so little. */
function NoKey({ agent, onMade }: { readonly agent: TabProps['agent']; readonly onMade: (isShown: boolean) => void }) {
  const make = useMakeKey()
  return (
    <div className="stack-3">
      <p className="quiet">
        {text.noKey} {text.noKeyMake}
      </p>
      {make.error && <InlineError error={apiErrorOf(make.error)} />}
      <div>
        <Button
          look="primary"
          icon="key"
          isBusy={make.isPending}
          onClick={() => {
            onMade(true)
            make.mutate({ name: text.keyName(agent.name), scope: 'inference' })
          }}
        >
          {text.makeKey}
        </Button>
      </div>
      {make.data && (
        <SecretPanel
          title={text.keyMade(make.data.name)}
          secret={make.data.key}
          variable="BRIGADE_KEY"
          clients={[]}
          onDone={() => {
            make.reset()
            onMade(false)
          }}
        >
          <p>{text.keySecret}</p>
        </SecretPanel>
      )}
    </div>
  )
}

function MintForm({ agent, keys }: { readonly agent: TabProps['agent']; readonly keys: readonly BindingKey[] }) {
  const [chosen, setChosen] = useState<readonly Scope[]>(scopes)
  const [life, setLife] = useState('')
  const [keyId, setKeyId] = useState(String(keys[0]?.id ?? ''))
  const mint = useMutation({
    mutationFn: () =>
      api('mintAgentTokenConsole', {
        path: { id: agent.id },
        body: {
          key_id: Number(keyId),
          ...(chosen.length === scopes.length ? {} : { scope: chosen.join(' ') }),
          ...(life === '' ? {} : { ttl_s: Number(life) }),
        },
      }),
  })
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (chosen.length > 0 && !mint.isPending) mint.mutate()
      }}
    >
      <fieldset className="scopes">
        <legend>{text.scopes}</legend>
        {scopes.map(scope => (
          <Check
            key={scope}
            label={text.scopeHints[scope][0]}
            hint={text.scopeHints[scope][1]}
            isChecked={chosen.includes(scope)}
            onChange={isOn => setChosen(scopes.filter(each => (each === scope ? isOn : chosen.includes(each))))}
          />
        ))}
        {chosen.length === 0 && <FieldError>{text.noScope}</FieldError>}
      </fieldset>
      <SelectField label={text.life} value={life} onChange={event => setLife(event.target.value)}>
        {text.lives.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </SelectField>
      <SelectField label={text.key} hint={text.keyHint} value={keyId} onChange={event => setKeyId(event.target.value)}>
        {keys.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </SelectField>
      {mint.error && <InlineError error={apiErrorOf(mint.error)} />}
      <div>
        <Button look="primary" icon="key" type="submit" isBusy={mint.isPending} disabled={chosen.length === 0}>
          {text.makeToken}
        </Button>
      </div>
      <div className="stack-3">
        <p className="quiet">{text.refresh}</p>
        <Code text={`npx brigade agent token ${agent.id}`} />
      </div>
      {mint.data && (
        <SecretPanel
          title={text.minted(agent.name)}
          secret={mint.data.access_token}
          variable="BRIGADE_TOKEN"
          clients={clientsOf(location.origin, mint.data.access_token)}
          onDone={() => mint.reset()}
        >
          <p>{text.mintedAbout(exactTime(mint.data.expires_at))}</p>
        </SecretPanel>
      )}
    </form>
  )
}

const clientsOf = (origin: string, token: string) => [
  {
    id: 'curl',
    label: 'curl',
    text: `curl ${origin}/v1/chat/completions \\\n  -H "authorization: Bearer ${token}" \\\n  -H "content-type: application/json" \\\n  -d '{"model":"auto","messages":[{"role":"user","content":"Hello"}]}'`,
  },
  { id: 'env', label: 'OpenAI SDK', text: `OPENAI_BASE_URL=${origin}/v1\nOPENAI_API_KEY=${token}` },
  { id: 'whoami', label: 'Check it', text: `curl ${origin}/v1/me/whoami \\\n  -H "authorization: Bearer ${token}"` },
]
