import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { Facts } from '../../../ui/data/facts.tsx'
import { Status } from '../../../ui/data/status.tsx'
import { useNow } from '../../../ui/data/time.tsx'
import { exactTime } from '../../../ui/format/dates.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { TextAreaField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { text } from '../text.ts'
import { type TrustRule, useAgentName } from '../use-trust.ts'
import { exchange } from './exchange.ts'
import { claimsIn, differencesOf, type TokenClaims } from './match.ts'

/** The gateway reads no longer token than this. */
const tokenMax = 32 * 1024

/** Compares a pasted token with the rules, and exchanges it when the person wants to. */
export function TokenTester({ rules }: { readonly rules: readonly TrustRule[] }) {
  const [typed, setTyped] = useState('')
  const token = typed.trim()
  const claims = token === '' ? null : claimsIn(token)
  return (
    <Panel title={text.tabs.test}>
      <div className="stack-5">
        <p className="quiet">{text.test.about}</p>
        <TextAreaField
          label={text.test.token}
          hint={text.test.tokenHint}
          rows={4}
          maxLength={tokenMax}
          value={typed}
          error={token !== '' && claims === null ? text.test.notToken : null}
          onChange={event => setTyped(event.target.value)}
        />
        {claims !== null && <Result key={token} token={token} claims={claims} rules={rules} />}
      </div>
    </Panel>
  )
}

function Result({ token, claims, rules }: { readonly token: string; readonly claims: TokenClaims; readonly rules: readonly TrustRule[] }) {
  const nowMs = useNow()
  const compared = rules.map(rule => ({ rule, parts: differencesOf(rule, claims) })).sort((one, other) => one.parts.length - other.parts.length)
  const fitting = compared.find(({ parts }) => parts.length === 0)?.rule
  return (
    <div className="stack-5" aria-live="polite">
      <section className="stack-3">
        <h3 className="tester-head">{text.test.says}</h3>
        <Facts
          facts={[
            [text.test.issuer, <code key="issuer">{claims.issuer}</code>],
            [text.test.audience, <code key="audience">{claims.audiences.join(', ')}</code>],
            [text.test.subject, <code key="subject">{claims.subject}</code>],
            [text.test.ends, claims.expMs === null ? '–' : exactTime(new Date(claims.expMs).toISOString())],
          ]}
        />
        {claims.expMs !== null && claims.expMs <= nowMs && <Status tone="bad">{text.test.ended}</Status>}
        {claims.nbfMs !== null && claims.nbfMs > nowMs && <Status tone="warn">{text.test.notYet}</Status>}
      </section>
      <section className="stack-3">
        <h3 className="tester-head">{text.test.checks}</h3>
        <p>
          <Status tone={fitting === undefined ? 'bad' : 'good'}>
            {fitting === undefined ? text.test.noMatch : text.test.match(fitting.name, fitting.agent_id)}
          </Status>
        </p>
        <ul className="tester-rules">
          {compared.map(({ rule, parts }) => (
            <li key={rule.id}>
              <span>{rule.name}</span>
              <span className="quiet">{parts.length === 0 ? text.test.fits : text.test.differs(parts.map(part => text.test.parts[part]).join(', '))}</span>
            </li>
          ))}
        </ul>
      </section>
      {fitting !== undefined && <ExchangeNow token={token} rule={fitting} />}
    </div>
  )
}

function ExchangeNow({ token, rule }: { readonly token: string; readonly rule: TrustRule }) {
  const agent = useAgentName(rule.agent_id)
  const ask = useMutation({ mutationFn: () => exchange(token, rule) })
  return (
    <section className="stack-3">
      <p className="quiet">{text.test.exchangeAbout}</p>
      <div>
        <Button icon="rotate" isBusy={ask.isPending} onClick={() => ask.mutate()}>
          {text.test.exchange}
        </Button>
      </div>
      {ask.data && <Status tone="good">{text.test.exchanged(agent, ask.data.scope, ask.data.seconds)}</Status>}
      {ask.error && <InlineError error={apiErrorOf(ask.error)} />}
    </section>
  )
}
