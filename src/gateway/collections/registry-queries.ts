import { statement } from '../../platform/db/db.ts'
import type { CollectionContent, VersionRow } from './collection-queries.ts'

/** A public collection as everybody reads it. It says nothing about its organisation. */
export interface PublicRow extends CollectionContent {
  readonly id: number
  readonly slug: string
  readonly version: number
  readonly stars: number
  readonly forks: number
  /** Slug of the collection from which this one was forked. Null while that collection is not public. */
  readonly forkedFromSlug: string | null
  readonly monitored: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** A collection in a list, with the beginning of its readme. */
export interface ListedRow extends PublicRow {
  readonly isReadmeCut: boolean
}

const columns = (readme: string): string => `c.id, c.slug, c.name, c.model_id as "modelId", c.steps, ${readme} as "readmeMd", c.version, c.stars, c.forks,
     (select s.slug from collections s where s.id = c.forked_from_id and s.is_public) as "forkedFromSlug", c.monitored,
     c.created_at as "createdAt", c.updated_at as "updatedAt"`

const listed = (condition: string, readmeMax: string, max: string): string =>
  `select ${columns(`left(c.readme_md, ${readmeMax})`)}, length(c.readme_md) > ${readmeMax} as "isReadmeCut"
   from collections c where c.is_public${condition} order by c.stars desc, c.created_at desc, c.id desc limit ${max}`

/** Lists public collections, most stars first, then newest. `readmeMax` is in characters. */
export const listPublic = statement<[readmeMax: number, max: number], ListedRow>('collections.list_public', listed('', '$1::int', '$2::int'))

export const listPublicOfModel = statement<[modelId: string, readmeMax: number, max: number], ListedRow>(
  'collections.list_public_of_model',
  listed(' and c.model_id = $1::text', '$2::int', '$3::int'),
)

export const findPublic = statement<[slug: string], PublicRow>(
  'collections.find_public',
  `select ${columns('c.readme_md')} from collections c where c.is_public and c.slug = $1::text`,
)

/** The newest versions of a public collection, newest first. */
export const listPublicVersions = statement<[id: number, max: number], VersionRow>(
  'collections.list_public_versions',
  `select v.version, v.name, v.model_id as "modelId", v.steps, v.created_at as "createdAt"
   from collection_versions v join collections c on c.id = v.collection_id and c.is_public
   where v.collection_id = $1::int order by v.version desc limit $2::int`,
)
