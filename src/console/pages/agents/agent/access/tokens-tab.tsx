import { useState } from 'react'
import { Code } from '../../../../ui/data/code.tsx'
import { Panel } from '../../../../ui/layout/panel.tsx'
import { Tabs } from '../../../../ui/layout/tabs.tsx'
import type { TabProps } from '../../agent-tabs.ts'
import type { AgentFamily } from '../../use-agents.ts'
import { text } from '../text.ts'
import { MintToken } from './mint-token.tsx'

/** Tokens of the agent: make one, keep a program in tokens, and verify one elsewhere. */
export function TokensTab({ agent, isMine }: TabProps) {
  return (
    <div className="agent-columns">
      <div className="agent-column">
        <Panel title={text.mint} note={text.mintNote}>
          {agent.status === 'revoked' ? <p className="quiet">{text.endedMint}</p> : <MintToken agent={agent} isMine={isMine} />}
        </Panel>
      </div>
      <div className="agent-column">
        <Panel title={text.claims}>
          <Claims agent={agent} />
        </Panel>
        <Panel title={text.verify} note={text.verifyNote}>
          <Verify />
        </Panel>
      </div>
    </div>
  )
}

/** The claims that a token of this agent has. */
function Claims({ agent: { id, parents } }: { readonly agent: AgentFamily }) {
  const rows = [
    ['sub', `agent:${id}`],
    ...(parents.length === 0 ? [] : [['act', parents.map(parent => `agent:${parent.id}`).join(' ← ')] as const]),
    ['scope', 'inference …'],
    ['key_id', 'your key'],
    ['exp', 'a time, in seconds'],
  ] as const
  return (
    <dl className="facts claims">
      {rows.map(([claim, value]) => (
        <div key={claim}>
          <dt>
            <code>{claim}</code> {text.claimRows[claim as keyof typeof text.claimRows]}
          </dt>
          <dd>
            <code>{value}</code>
          </dd>
        </div>
      ))}
    </dl>
  )
}

const verifiers = (origin: string) => [
  {
    id: 'jose',
    label: 'Node (jose)',
    text: `import { createRemoteJWKSet, jwtVerify } from 'jose'\n\nconst keys = createRemoteJWKSet(new URL('${origin}/.well-known/jwks.json'))\nconst { payload } = await jwtVerify(token, keys, {\n  issuer: '${origin}',\n  audience: '${origin}',\n})`,
  },
  {
    id: 'pyjwt',
    label: 'Python (PyJWT)',
    text: `import jwt\n\nkeys = jwt.PyJWKClient("${origin}/.well-known/jwks.json")\nkey = keys.get_signing_key_from_jwt(token).key\nclaims = jwt.decode(token, key, algorithms=["ES256"],\n                    issuer="${origin}", audience="${origin}")`,
  },
]

function Verify() {
  const all = verifiers(location.origin)
  const [id, setId] = useState('jose')
  return (
    <div className="stack-3">
      <p className="quiet">{text.verifyAbout}</p>
      <Tabs label={text.verify} value={id} onChange={setId} tabs={all.map(({ id: each, label }) => ({ id: each, label }))}>
        <Code text={all.find(one => one.id === id)?.text ?? ''} />
      </Tabs>
    </div>
  )
}
