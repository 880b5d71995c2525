/** A memory with people, agents and versions for tests of the console. */
import { statement } from '../../src/platform/db/db.ts'
import type { TestApp } from '../harness/app.ts'
import { movableClock } from '../harness/clock.ts'
import { type Person, personOf, workspaceOf } from '../memory/rights-people.ts'

/** The settings of a gateway with the library. The clock moves between writes, so that the versions have times. */
export const libraryOptions = () => ({ clock: movableClock(Date.now() - 3 * dayMs), env: { FOLDER_STORE: 'true', CONSOLE_RPM: '100000', ANON_RPM: '100000' } })

const dayMs = 86_400_000
const hourMs = 3_600_000

export interface Library {
  readonly owner: string
  readonly asha: Person
  readonly workspace: number
  /** Writes with a session, as that person. */
  put(key: string, text: string | Uint8Array, cookie?: string): Promise<string>
  read(key: string): Promise<string>
}

const rename = statement<[id: number, name: string]>('test.rename_reader', 'update users set name = $2::text where id = $1::int')

/** A text with everything that Markdown has, and with things that must not run. */
export const guide = `# House style of answers

Answers are **short**. They begin with the result, and name *what was checked*.

## What to check

- [x] the build on \`main\`
- [ ] the changelog
- links: [the plan](plan.md), <https://example.com/style>, www.example.org
  1. first
  2. second

> A quote of ~~the old~~ rule &amp; its reason.

\`\`\`ts
const limit = 3
\`\`\`

| model | share |
|:--|--:|
| small | 80 % |
| large | 20 % |

#### A heading that leaves out a level

![a diagram](https://tracker.test/pixel.png) and [a script](javascript:alert(document.domain)) and <img src=x onerror=alert(1)>

<script>alert(document.cookie)</script>
`

/** Makes the library: four places, an agent, a member with the name Asha Rao, and a note with four versions. */
export async function makeLibrary(app: TestApp, clock: ReturnType<typeof movableClock>): Promise<Library> {
  const owner = await app.signIn()
  const asha = await personOf(app, 'member')
  await app.db.exec(rename, asha.userId, 'Asha Rao')
  await app.db.exec(rename, app.userId, 'Ravi Menon')
  await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
  const workspace = await workspaceOf(app, 'Research', [app.userId, asha.userId])
  const agent = await app.newAgent('reviewer')
  const address = (key: string): string => `/me/memory/o?key=${encodeURIComponent(key)}`
  const answered = (answer: { status: number; text: string; headers: Headers }): string => {
    if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`)
    return answer.headers.get('etag') ?? ''
  }
  const put = async (key: string, text: string | Uint8Array, cookie = owner): Promise<string> => {
    if (typeof text === 'string') return answered(await app.call('PUT', address(key), text, { cookie }))
    const reply = await fetch(app.baseUrl + address(key), { method: 'PUT', headers: { cookie, 'content-type': 'text/plain' }, body: Buffer.from(text) })
    return answered({ status: reply.status, text: await reply.text(), headers: reply.headers })
  }
  const wait = (ms: number): void => clock.advance(ms)
  const byAgent = async (key: string, text: string) => app.call('PUT', `/v1${address(key)}`, text, { token: await agentToken(app, agent.id) })

  const note = (lines: readonly string[]): string => `# Notes\n\n${lines.map(line => `- ${line}`).join('\n')}\n`
  const facts = [
    'The build is green.',
    'Releases happen on Mondays.',
    'The owner prefers short answers.',
    'Numbers have Indian grouping.',
    'Ask before deleting.',
  ]
  await byAgent('agents/reviewer/notes.md', note(facts.slice(0, 3)))
  wait(20 * hourMs)
  await put('agents/reviewer/notes.md', note(facts), asha.cookie)
  wait(30 * hourMs)
  await byAgent('agents/reviewer/notes.md', note([...facts.slice(0, 1), 'Releases happen on Tuesdays.', ...facts.slice(2), 'The zebrafish test is slow.']))
  await put('agents/reviewer/plan.md', '# Plan\n\nSee [the notes](notes.md).\n', asha.cookie)
  await put('agents/reviewer/settings.json', '{\n  "depth": 3,\n  "model": "small"\n}\n')
  await put('agents/house.md', guide, asha.cookie)
  await put('agents/50% done? #1.md', 'A key with signs.', asha.cookie)
  await put('agents/diagram.png', Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0, 1, 2, 3, 0xff]), asha.cookie)
  wait(10 * hourMs)
  await put(`users/${app.userId}/draft.md`, '# Draft\n\nOnly mine.\n')
  answered(await app.call('POST', '/me/memory/append', { path: `workspaces/${workspace}/journal`, content: 'Looked at 12 changes.' }, { cookie: asha.cookie }))
  answered(
    await app.call(
      'POST',
      '/me/memory/promote',
      { name: 'security.md', content: '# Security\n\nTokens live 15 minutes.\n', source_keys: ['agents/house.md'] },
      { cookie: owner },
    ),
  )
  await app.call('POST', '/me/memory/shares', { space: 'launch', member_uids: [asha.userId] }, { cookie: owner })
  await put('shared/launch/plan.md', 'Ship on Monday.\n')
  wait(Date.now() - clock.nowMs())
  return { owner, asha, workspace, put, read: async key => (await app.call('GET', address(key), undefined, { cookie: owner })).text }
}

/** Returns a new token of an agent, because the clock has moved. */
async function agentToken(app: TestApp, id: number): Promise<string> {
  return (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json.access_token
}
