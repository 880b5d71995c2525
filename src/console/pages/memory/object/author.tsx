import { Icon } from '../../../ui/icon.tsx'
import { text } from '../text.ts'
import type { Entry } from '../use-memory.ts'

/** Who wrote something: the verified agent and the person whose key it used, or a label that a key gave itself. */
export function Author({ of: { author, author_name: name, agent_name: agent } }: { readonly of: Pick<Entry, 'author' | 'author_name' | 'agent_name'> }) {
  if (author === null) return <span className="quiet">{text.facts.outside}</span>
  const person = name ?? text.facts.member(author.user)
  if (agent !== undefined)
    return (
      <span className="memory-author" title={`${agent}, for ${person}`}>
        <Icon name="agent" size={14} />
        <span>{agent}</span>
      </span>
    )
  return (
    <span className="memory-author">
      <span>{person}</span>
      {author.agent !== undefined && <span className="quiet">as {author.agent}</span>}
    </span>
  )
}
