import { boundedPage, jsonBytes, type Paged } from '../../platform/db/bounded-page.ts'
import { statement } from '../../platform/db/db.ts'
import type { StoredStep } from '../routing/chains.ts'

/** The versioned part of a collection. */
export interface CollectionContent {
  readonly name: string
  readonly modelId: string
  readonly steps: readonly StoredStep[]
  readonly readmeMd: string
}

/** A collection as its own organisation reads it. */
export interface CollectionRow extends CollectionContent {
  readonly id: number
  readonly orgId: number
  readonly slug: string
  readonly isPublic: boolean
  readonly version: number
  readonly stars: number
  readonly forks: number
  /** True when the reading organisation has starred it itself. */
  readonly starred: boolean
  readonly forkedFromId: number | null
  /** Slug of the collection from which this one was forked. It stays when that collection is deleted. */
  readonly forkedFromSlug: string | null
  readonly monitored: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** One version without its readme. */
export interface VersionRow extends Omit<CollectionContent, 'readmeMd'> {
  readonly version: number
  readonly createdAt: Date
}

const content = `name, model_id as "modelId", steps`
const columns = `c.id, c.org_id as "orgId", c.slug, c.name, c.model_id as "modelId", c.steps, c.readme_md as "readmeMd", c.is_public as "isPublic",
     c.version, c.stars, c.forks, exists (select 1 from collection_stars s where s.collection_id = c.id and s.org_id = c.org_id) as "starred",
     c.forked_from_id as "forkedFromId", c.forked_from_slug as "forkedFromSlug", c.monitored, c.created_at as "createdAt", c.updated_at as "updatedAt"`

/** Lists a page of the collections of an organisation, newest first. It returns one collection more than the page has. */
export const listOwn = statement<[orgId: number, belowId: number | null, limit: number, maxBytes: number], CollectionRow & Paged>(
  'collections.list_own',
  `${boundedPage({
    from: 'from collections where org_id = $1::int and ($2::int is null or id < $2::int)',
    keys: 'id',
    order: 'id desc',
    bytes: jsonBytes('name', 'steps', 'readme_md'),
    limit: '$3::int',
    maxBytes: '$4::int',
  })}
   select ${columns}, p.found from shown p join collections c on c.org_id = $1::int and c.id = p.id order by p.place`,
)

/** Finds a collection of the organisation by its slug. Returns no row for a collection of another organisation, public or not. */
export const findOwn = statement<[orgId: number, slug: string], CollectionRow>(
  'collections.find_own',
  `select ${columns} from collections c where c.org_id = $1::int and c.slug = $2::text`,
)

export const findOwnById = statement<[orgId: number, id: number], CollectionRow>(
  'collections.find_own_by_id',
  `select ${columns} from collections c where c.org_id = $1::int and c.id = $2::int`,
)

/** The newest versions of a collection, newest first. */
export const listVersions = statement<[orgId: number, id: number, max: number], VersionRow>(
  'collections.list_versions',
  `select version, ${content}, created_at as "createdAt" from collection_versions
   where org_id = $1::int and collection_id = $2::int order by version desc limit $3::int`,
)

export const findVersion = statement<[orgId: number, id: number, version: number], CollectionContent & { readonly version: number }>(
  'collections.find_version',
  `select version, ${content}, readme_md as "readmeMd" from collection_versions where org_id = $1::int and collection_id = $2::int and version = $3::int`,
)

/** Locks the collection's row against edits, stars, forks and deletion. */
export const lockOwn = statement<[orgId: number, id: number], CollectionRow>(
  'collections.lock_own',
  `select ${columns} from collections c where c.org_id = $1::int and c.id = $2::int for no key update of c`,
)

/** Locks a collection that the organisation can see: its own, or a public one. */
export const lockVisible = statement<[orgId: number, slug: string], CollectionRow>(
  'collections.lock_visible',
  `select ${columns} from collections c where (c.org_id = $1::int or c.is_public) and c.slug = $2::text for no key update of c`,
)

/**
 * Locks a collection of the organisation and the collection from which it was forked, in the order of their ids. A source is older than its forks,
 * and deleting a source locks in the same order.
 */
export const lockWithSource = statement<[orgId: number, id: number], { id: number; slug: string; isPublic: boolean }>(
  'collections.lock_with_source',
  `select c.id, c.slug, c.is_public as "isPublic" from collections c
   where c.id in (select unnest(array[o.id, o.forked_from_id]) from collections o where o.org_id = $1::int and o.id = $2::int)
   order by c.id for update of c`,
)

/** Finds the organisation's fork of a collection. */
export const findFork = statement<[orgId: number, sourceId: number], CollectionRow>(
  'collections.find_fork',
  `select ${columns} from collections c where c.org_id = $1::int and c.forked_from_id = $2::int`,
)

/** Locks the organisation. Its new collections are then added one after the other, so the count of its collections is right. */
export const lockOrg = statement<[orgId: number], { id: number }>('collections.lock_org', `select id from orgs where id = $1::int for no key update`)

export const countOwn = statement<[orgId: number], { count: number }>(
  'collections.count_own',
  `select count(*)::int as "count" from collections where org_id = $1::int`,
)

/**
 * Takes the slug without a number when it is free, and `last` is then 1. Otherwise `last` is the number to append and try. A second transaction that
 * wants the same slug waits until the first one ends.
 */
export const takeStem = statement<[stem: string], { last: number }>(
  'collections.take_stem',
  `insert into collection_slugs as s (slug) values ($1::text) on conflict (slug) do update set last = s.last + 1 returning last`,
)

/** Takes a slug with an appended number. Returns no row when the slug was taken before. */
export const takeSlug = statement<[slug: string], { slug: string }>(
  'collections.take_slug',
  `insert into collection_slugs (slug) values ($1::text) on conflict (slug) do nothing returning slug`,
)

export const insertCollection = statement<
  [
    orgId: number,
    slug: string,
    name: string,
    modelId: string,
    steps: string,
    readmeMd: string,
    isPublic: boolean,
    forkedFromId: number | null,
    forkedFromSlug: string | null,
    userId: number | null,
    now: Date,
  ],
  CollectionRow
>(
  'collections.insert_collection',
  `insert into collections as c (org_id, slug, name, model_id, steps, readme_md, is_public, forked_from_id, forked_from_slug, created_by, created_at, updated_at)
   values ($1::int, $2::text, $3::text, $4::text, $5::jsonb, $6::text, $7::bool, $8::int, $9::text, $10::int, $11::timestamptz, $11::timestamptz)
   returning ${columns}`,
)

export const updateCollection = statement<
  [orgId: number, id: number, name: string, modelId: string, steps: string, readmeMd: string, isPublic: boolean, version: number, now: Date],
  CollectionRow
>(
  'collections.update_collection',
  `update collections c set name = $3::text, model_id = $4::text, steps = $5::jsonb, readme_md = $6::text, is_public = $7::bool, version = $8::int,
     updated_at = $9::timestamptz
   where c.org_id = $1::int and c.id = $2::int returning ${columns}`,
)

/** Stores the present content as a version. */
export const keepVersion = statement<[orgId: number, id: number, userId: number | null, now: Date]>(
  'collections.keep_version',
  `insert into collection_versions (collection_id, version, org_id, name, model_id, steps, readme_md, created_by, created_at)
   select c.id, c.version, c.org_id, c.name, c.model_id, c.steps, c.readme_md, $3::int, $4::timestamptz
   from collections c where c.org_id = $1::int and c.id = $2::int`,
)

/** Deletes all versions but the newest `kept`. */
export const dropOldVersions = statement<[orgId: number, id: number, kept: number]>(
  'collections.drop_old_versions',
  `delete from collection_versions v using collections c
   where v.org_id = $1::int and v.collection_id = $2::int and c.id = v.collection_id and v.version <= c.version - $3::int`,
)

export const deleteCollection = statement<[orgId: number, id: number]>(
  'collections.delete_collection',
  `delete from collections where org_id = $1::int and id = $2::int`,
)

export const addStar = statement<[orgId: number, id: number, now: Date]>(
  'collections.add_star',
  `insert into collection_stars (org_id, collection_id, created_at) values ($1::int, $2::int, $3::timestamptz) on conflict do nothing`,
)

export const removeStar = statement<[orgId: number, id: number]>(
  'collections.remove_star',
  `delete from collection_stars where org_id = $1::int and collection_id = $2::int`,
)

/** Counts the stars of a collection. The transaction has locked the row, so a concurrent change of the number waits. */
export const countStars = statement<[id: number], { stars: number }>(
  'collections.count_stars',
  `update collections set stars = (select count(*) from collection_stars s where s.collection_id = $1::int) where id = $1::int returning stars`,
)

/** Counts the forks of a collection whose row the transaction has locked. */
export const countForks = statement<[id: number]>(
  'collections.count_forks',
  `update collections set forks = (select count(*) from collections f where f.forked_from_id = $1::int) where id = $1::int`,
)

/** Lists the collections that the organisation has starred. */
export const listStarred = statement<[orgId: number, ids: readonly number[]], { id: number }>(
  'collections.list_starred',
  `select collection_id as "id" from collection_stars where org_id = $1::int and collection_id = any($2::int[]) order by collection_id`,
)
