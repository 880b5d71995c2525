import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Code } from '../../../ui/data/code.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { bytesText, count } from '../../../ui/format/numbers.ts'
import { Fold } from '../../../ui/forms/choices.tsx'
import { Copy } from '../../../ui/forms/copy.tsx'
import { sourcesOf } from '../edit/use-save.ts'
import { kindOf } from '../places.ts'
import { text } from '../text.ts'
import { bytesAddress, type MemoryObject, type Version } from '../use-memory.ts'
import { Author } from './author.tsx'

const { facts } = text

interface Fact {
  readonly name: string
  readonly value: ReactNode
}

interface ObjectFactsProps {
  readonly object: MemoryObject
  /** The versions that were read so far, newest first. Undefined until they are read. */
  readonly versions: readonly Version[] | undefined
  readonly hasMore: boolean
}

/** What is known of an object: who wrote it and how, who reads it, and where it is. */
export function ObjectFacts({ object, versions, hasMore }: ObjectFactsProps) {
  const { key, bytes, etag, meta } = object
  const current = versions?.find(version => version.current)
  const kind = kindOf(key)
  const sources = sourcesOf(object)
  const promoter = meta.get('promoted-by')
  const rows: readonly Fact[] = [
    { name: facts.author, value: current ? <Author of={current} /> : null },
    // The name of an agent hides the person, so the person has a row of their own then.
    { name: facts.person, value: current?.agent_name === undefined ? null : (current.author_name ?? null) },
    { name: facts.client, value: meta.get('client') === undefined ? null : decoded(meta.get('client') ?? '') },
    { name: facts.written, value: current ? <Time at={current.modified} /> : null },
    { name: facts.size, value: <span title={`${count(bytes.length)} bytes`}>{bytesText(bytes.length)}</span> },
    { name: facts.versions, value: versions === undefined ? null : `${count(versions.length)}${hasMore ? ' or more' : ''}` },
    { name: facts.promotedBy, value: promoter === undefined ? null : facts.member(promoter) },
    { name: facts.readers, value: text.readers[kind] },
    { name: facts.writers, value: text.writers[kind] },
  ]
  return (
    <section className="memory-facts" aria-label={facts.title}>
      <dl className="facts">
        {rows.map(({ name, value }) =>
          value === null ? null : (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
      </dl>
      {sources.length > 0 && (
        <div>
          <h2>{facts.sources}</h2>
          <ul className="memory-sources">
            {sources.map(source => (
              <li key={source}>
                <Link to="/memory/$" params={{ _splat: source }}>
                  {source}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      )}
      <div className="memory-path">
        <code>{key}</code>
        <Copy text={location.href} label={text.copyLink} />
      </div>
      <Fold title={text.curl}>
        <Code text={`curl -b .brigade/cookies \\\n  '${location.origin}${bytesAddress(key)}'`} />
        <p className="quiet memory-etag">
          {facts.etag} <code>{etag}</code>
        </p>
      </Fold>
    </section>
  )
}

/** Returns a name that the gateway encoded for a header. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
