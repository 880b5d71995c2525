import type { ReactNode } from 'react'
import { Time } from '../../../ui/data/time.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { text } from '../text.ts'
import type { Version } from '../use-memory.ts'

/** What is shown or edited: its ETag, and when it was read. */
export interface ShownObject {
  readonly etag: string | null
  readonly readAtMs: number
}

interface ReadVersions {
  readonly data: readonly Version[] | undefined
  readonly dataUpdatedAt: number
}

/** A later version writes its ETag with or without quotes. */
const bare = (etag: string): string => etag.replaceAll('"', '')

/**
 * Returns the version that is in the place of what is shown. Null while what is shown is current. A list of versions that is older than what is shown says
 * nothing. Decision 0742 says why the page asks before it shows the other version.
 */
export function newerThan({ etag, readAtMs }: ShownObject, { data, dataUpdatedAt }: ReadVersions): Version | null {
  const current = data?.find(version => version.current) ?? data?.find(({ how }) => how === 'delete')
  if (etag === null || current === undefined || dataUpdatedAt < readAtMs) return null
  if (current.how === 'delete') return current
  return current.etag === null || bare(current.etag) === bare(etag) ? null : current
}

/** Says that somebody changed what is shown. The text stays until the person asks for the other one. */
export function ChangedNote({ by, children }: { readonly by: Version; readonly children?: ReactNode }) {
  const name = by.agent_name ?? by.author_name ?? text.newer.somebody
  return (
    <div className="memory-newer" role="status">
      <Icon name="history" size={14} />
      <p>
        {by.how === 'delete' ? text.newer.deleted(name) : text.newer.changed(name)} <Time at={by.modified} />
      </p>
      <span className="memory-newer-acts">{children}</span>
    </div>
  )
}
