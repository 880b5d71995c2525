import { keyText, quoted } from '../tools/memory/text/tool-memory-marking.ts'
import type { Prompt } from './prompt.ts'

/**
 * The prompt handoff passes work to another agent or person. It says where the model puts a note and what the note contains. The model writes the
 * note, because only the model knows the conversation.
 */
export const handoff: Prompt = {
  entry: {
    name: 'handoff',
    title: 'Hand off',
    description: 'Write down the state of the work in shared memory so that another agent or person can go on.',
    arguments: [
      { name: 'to', description: 'Who goes on: the name of an agent, or a person.', required: true },
      { name: 'summary', description: 'What the work is and how far it is, in your words. Left out: the model sums it up.' },
      { name: 'next', description: 'What is to be done next.' },
    ],
  },
  rowOf: rows => rows.memory.write,
  async write({ to = '', summary, next }, { reader, clock }) {
    const { principal } = reader.call
    const from = principal.kind === 'agent' ? principal.agentName : principal.keyName
    const at = new Date(clock.nowMs()).toISOString()
    const folder = `agents/${slugOf(to)}/inbox/`
    const key = `${folder}${at.slice(0, 10)}-${at.slice(11, 16).replace(':', '')}-from-${slugOf(from)}.md`
    const text = [
      `Hand this work off to ${to}. Write one object with memory_write: key ${keyText(key)}, create_only true. If that key exists, add -2 before .md.`,
      '',
      'Content, in Markdown, so that somebody who was not here can go on without asking:',
      `- Head: "# Handoff to ${to}", then from ${quoted(from)}, at ${at}.`,
      summary === undefined ? '- Summary: what the work is, and how far it is.' : `- Summary, beginning with: ${summary}`,
      '- Done: what is finished, with file paths, commits, links or memory keys as evidence.',
      next === undefined ? '- Next: the steps that are left, in order, the first one ready to be done.' : `- Next, beginning with: ${next}`,
      '- Decisions and why; what was tried and did not work; open questions.',
      '- Limits: budget, deadlines, and what must not be touched.',
      '',
      'No secrets: no keys, tokens or passwords. Mark what you only assume. Then tell me the key, and that the receiver finds it with',
      `memory_list prefix ${keyText(folder)}, or is notified by a subscription to memory://${folder}.`,
    ].join('\n')
    return [{ role: 'user', content: { type: 'text', text } }]
  },
}

/** Returns the name in a form that can be one segment of a memory key. */
function slugOf(name: string): string {
  const slug = name
    .normalize('NFC')
    .toLowerCase()
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
  return slug === '' ? 'anyone' : [...slug].slice(0, 60).join('')
}
