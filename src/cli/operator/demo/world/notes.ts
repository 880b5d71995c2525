/** The shared memory of the demonstration: notes of people and agents, most of them changed several times. */
import { must } from '../demo-client.ts'
import type { Planned } from './calls.ts'
import type { Organisation } from './organisation.ts'
import type { Seeded } from './seeded.ts'
import { visitor } from './visitor.ts'

interface Note {
  readonly key: string
  /** A person, or an agent. */
  readonly author: string
  readonly title: string
  readonly lines: readonly string[]
}

const dayMs = 24 * 3600_000
/** Half an hour before the end of the demonstration. */
const lastMs = 30 * 60_000
const versionsMax = 6

const records: readonly Note[] = [
  {
    key: 'org/records/incident-playbook.md',
    author: 'Asha Rao',
    title: 'Incident playbook',
    lines: [
      'Page whoever is on call.',
      'Write the timeline while it happens.',
      'Stop the agent first, then look for the cause.',
      'Publish what you learned within a week.',
    ],
  },
  {
    key: 'org/records/wording.md',
    author: 'Asha Rao',
    title: 'Wording',
    lines: ['Begin with the subject.', 'One idea in a sentence.', 'Numbers have units.', 'Link the source of every figure.', 'Prefer short words.'],
  },
  {
    key: 'org/records/vendors.md',
    author: 'Asha Rao',
    title: 'Vendors',
    lines: ['Anthropic: code and review.', 'OpenAI: short answers.', 'Google: long documents.', 'Sarvam: Hindi and Tamil, served in India.'],
  },
  {
    key: 'org/records/data-rules.md',
    author: 'Asha Rao',
    title: 'Rules for data',
    lines: ['No customer names in prompts.', 'Support texts stay in India.', 'Delete exports after 30 days.'],
  },
]

/** What agents write about, by the beginning of their names. */
const subjects: Readonly<Record<string, readonly string[]>> = {
  review: ['conventions', 'flaky-tests', 'risky-files', 'open-questions'],
  security: ['known-patterns', 'triage-log'],
  release: ['draft-2026-11', 'audience'],
  refactor: ['plan', 'done', 'do-not-touch'],
  'on-call': ['handover', 'noisy-alerts'],
  log: ['patterns', 'baselines'],
  desk: ['tone', 'open-cases', 'phrases'],
  refunds: ['limits', 'escalations'],
  voice: ['vocabulary'],
  research: ['reading-list', 'hypotheses', 'findings'],
  paper: ['queue', 'skipped'],
  fact: ['sources', 'doubts'],
  dataset: ['schema', 'dropped-rows', 'sources'],
  label: ['guidelines', 'edge-cases'],
  survey: ['questions', 'themes'],
  translator: ['glossary', 'style'],
  evaluator: ['rubric', 'scores'],
}
const sentences = [
  'The last run agreed with the one before.',
  'Three cases are open; two need a person.',
  'Use the short form when the text is spoken.',
  'The source was moved; the new place is in the index.',
  'Do not repeat what the record already says.',
  'Ask the owner before a change of the schema.',
  'The limit was reached twice this week.',
  'Both reviewers preferred the second wording.',
  'Skip files that nobody changed for a year.',
  'The figure is an estimate, with a margin of ten percent.',
]

function notesOf({ agents }: Organisation, random: Seeded): Note[] {
  const ofAgents = agents.flatMap(({ name }) => {
    const [, topics = []] = Object.entries(subjects).find(([start]) => name.startsWith(start)) ?? []
    return topics.map(topic => ({
      key: `agents/${name}/${topic}.md`,
      author: name,
      title: topic.replaceAll('-', ' '),
      lines: Array.from({ length: random.whole(3, 7) }, () => random.pick(sentences)),
    }))
  })
  return [...records, ...ofAgents]
}

/** Returns the writes of all notes with their versions, at times between two instants, and how many objects there are in the end. */
export function plannedNotes(baseUrl: string, org: Organisation, random: Seeded, from: number, to: number): { objects: number; writes: readonly Planned[] } {
  const notes = notesOf(org, random)
  const writes = notes.flatMap(note => {
    const times = Array.from({ length: random.whole(1, versionsMax) }, () => Math.floor(from + random.next() * (to - lastMs - from))).sort((a, b) => a - b)
    return times.map((atMs, index) => {
      const text = textOf(note, index + 1, random)
      return { atMs, run: () => writeNote(baseUrl, org, note, text) }
    })
  })
  return { objects: notes.length, writes }
}

/** A later version has one more line, and one line that was changed. */
function textOf({ title, lines }: Note, version: number, random: Seeded): string {
  const kept = lines.map((line, index) => (version > 1 && index === (version * 2) % lines.length ? `${line} (Checked again.)` : line))
  const added = Array.from({ length: version - 1 }, () => random.pick(sentences))
  return `# ${title}\n\n${[...kept, ...added].map(line => `- ${line}`).join('\n')}\n`
}

async function writeNote(baseUrl: string, org: Organisation, { key, author }: Note, text: string): Promise<void> {
  const path = `/memory/o?key=${encodeURIComponent(key)}`
  // Records of the organisation are written by promotion only.
  if (org.people.has(author)) {
    await org.owner('POST', '/me/memory/promote', { name: key.slice('org/records/'.length), content: text })
    return
  }
  const agent = must(
    org.agents.find(each => each.name === author),
    author,
  )
  // A token is minted for each write, because days pass between two of them.
  const { access_token: token } = await org.owner('POST', `/me/agents/${agent.id}/token`, { key_id: org.tokenKeyId })
  await visitor(baseUrl, { token: String(token) })('PUT', `/v1/me${path}`, text)
}

/** Returns the instant that is so many days before another. */
export const daysBefore = (days: number, ms: number): number => ms - days * dayMs
