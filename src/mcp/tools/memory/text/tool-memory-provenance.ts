/** Reads the origin of an object from the headers of a read. */
import { z } from 'zod'
import { agentText, keyText, nameText, oneLine } from './tool-memory-marking.ts'

export const provenanceShape = z.object({
  user: z.string().nullable().describe('User id, or key-<id> for a key that no user backs.'),
  agent: z.string().nullable().describe('Id of a verified agent, or in double quotes the label that a plain key gave itself.'),
  verified: z.boolean().nullable().describe('Whether the agent proved itself by a token; false: a label, the word of the key; null: there is no agent.'),
  agent_name: z.string().nullable().describe('Only of a verified agent.'),
  client: z.string().nullable().describe('What the program that wrote calls itself.'),
  at: z.string().nullable(),
  promoted_by: z.string().nullable().describe('User id of the owner or admin who vouches for a record.'),
  sources: z.array(z.string()).describe('Keys that a record was made from, as its promoter says.'),
  restored_from: z.string().nullable().describe('The earlier version that was written again.'),
})
export type Provenance = z.output<typeof provenanceShape>

type Headers = Readonly<Record<string, string>>

/** Returns the provenance from the headers of a read. An object that was not written through the gateway has few of these headers. */
export function provenanceOf(headers: Headers): Provenance {
  const meta = (name: string): string | null => headers[`x-br-meta-${name}`] ?? null
  const sources = meta('sources')
  return {
    user: meta('user'),
    agent: decoded(meta('agent')),
    verified: meta('agent') === null ? null : meta('agent-verified') === 'true',
    agent_name: decoded(meta('agent-name')),
    client: decoded(meta('client')),
    at: timeOf(meta('ts')) ?? timeOf(headers['last-modified'] ?? null),
    promoted_by: meta('promoted-by'),
    sources: sources === null ? [] : sources.split(',').map(source => decoded(source) ?? source),
    restored_from: meta('restored-from'),
  }
}

/** Returns one line for a model, such as: written by agent 21 "triage", user 7 at …. */
export function provenanceText({
  user,
  agent,
  agent_name: name,
  verified,
  client,
  at,
  promoted_by: promoter,
  sources,
  restored_from: version,
}: Provenance): string {
  const by = [...(agent === null ? [] : [agentText(agent, verified === true, name)]), ...(user === null ? [] : [`user ${nameText(user)}`])]
  return [
    `written by ${by.length === 0 ? 'an unknown author' : by.join(', ')}${client === null ? '' : ` with ${nameText(client)}`} at ${at ?? 'an unknown time'}`,
    ...(promoter === null ? [] : [`promoted by user ${nameText(promoter)}`]),
    ...(sources.length === 0 ? [] : [`made from ${sourcesText(sources)}`]),
    ...(version === null ? [] : [`restored from version ${oneLine(version, 40)}`]),
  ].join(' · ')
}

/** Returns the first sources, each in quotes. */
function sourcesText(sources: readonly string[]): string {
  const rest = sources.length - sourcesShown
  return `${sources.slice(0, sourcesShown).map(keyText).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

const sourcesShown = 5

/** Returns the time. Returns null for an invalid time, because the owner of the bucket can write any metadata. */
function timeOf(text: string | null): string | null {
  const ms = text === null ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? null : new Date(ms).toISOString()
}

/** Returns the decoded text. Object metadata is ASCII, so names in it are percent-encoded. */
function decoded(text: string | null): string | null {
  try {
    return text === null ? null : decodeURIComponent(text)
  } catch {
    return text
  }
}
