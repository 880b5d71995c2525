/** Where things are in memory, in words: the roots, the names of folders, and who reads and writes there. The gateway decides; this file only explains. */
import { text } from './text.ts'

/** What the names of folders need: the folders of the person, and the names of workspaces. */
export interface Places {
  /** The folder of the person, such as users/7/. */
  readonly own: string
  /** Folders of workspaces, such as workspaces/3/, with their names. */
  readonly workspaces: readonly { readonly folder: string; readonly name: string }[]
  /** Names of the shared spaces that the person may open. */
  readonly spaces: readonly string[]
}

/** The kinds of places, by who reads and writes in them. */
export type PlaceKind = 'records' | 'teamRecords' | 'journal' | 'space' | 'own' | 'agents' | 'above'

/** A folder that is there whether or not it has content. */
export interface Root {
  /** Its prefix, with the slash at the end. */
  readonly prefix: string
  readonly label: string
  readonly icon: 'shield' | 'people' | 'link' | 'key' | 'agent' | 'clock'
  readonly about: string
}

const rules: readonly (readonly [PlaceKind, RegExp])[] = [
  ['records', /^org\/records(\/|$)/],
  ['teamRecords', /^workspaces\/[^/]+\/records(\/|$)/],
  ['journal', /^workspaces\/[^/]+\/journal(\/|$)/],
  ['space', /^shared\/[^/]+/],
  ['own', /^users\/[^/]+/],
  ['agents', /^agents(\/|$)/],
]

/** Returns the kind of the place of a key or folder. */
export const kindOf = (path: string): PlaceKind => rules.find(([, shape]) => shape.test(path))?.[0] ?? 'above'

/** Returns whether a person who may read the place may also write there. Records are written by promotion only. */
export const isWritable = (path: string): boolean => ['journal', 'space', 'own', 'agents'].includes(kindOf(path))

/** Returns whether a path is below records, which are written by promotion. */
export const isRecord = (path: string): boolean => ['records', 'teamRecords'].includes(kindOf(path))

/** An appended entry has a name that the gateway made, and it never changes. */
const entryName = /\/\d{4}-\d\d-\d\d\/[0-9A-HJKMNP-TV-Z]{26}-[^/]+\.md$/

/** Returns whether a person may change an object. Owners and admins change records, which promotes the text again. */
export const mayEdit = (path: string, isAdmin: boolean): boolean => (isRecord(path) ? isAdmin : isWritable(path) && !entryName.test(path))

/** Returns the roots in their order. */
export function rootsOf({ own, workspaces }: Places): Root[] {
  const { roots } = text
  return [
    { prefix: 'org/records/', label: roots.records, icon: 'shield', about: roots.recordsAbout },
    ...workspaces.map(({ folder, name }) => ({ prefix: folder, label: roots.workspace(name), icon: 'people' as const, about: roots.workspaceAbout })),
    { prefix: 'shared/', label: roots.shared, icon: 'link', about: roots.sharedAbout },
    { prefix: own, label: roots.own, icon: 'key', about: roots.ownAbout },
    { prefix: 'agents/', label: roots.agents, icon: 'agent', about: roots.agentsAbout },
  ]
}

/** Returns the folders below a folder that are there without content. Null for a folder whose content the gateway lists. */
export function fixedChildren({ spaces }: Places, prefix: string): Root[] | null {
  if (prefix === 'shared/') return spaces.map(space => ({ prefix: `shared/${space}/`, label: space, icon: 'link', about: '' }))
  if (!/^workspaces\/[^/]+\/$/.test(prefix)) return null
  const { records, journal, recordsOfTeam, journalOfTeam } = text.roots
  return [
    { prefix: `${prefix}records/`, label: recordsOfTeam, icon: 'shield', about: records },
    { prefix: `${prefix}journal/`, label: journalOfTeam, icon: 'clock', about: journal },
  ]
}

/** Returns whether a path is a folder by its place, so that nobody has to look. */
export function isFixedFolder(places: Places, path: string): boolean {
  const prefix = `${path}/`
  if (['', 'org', 'org/records', 'workspaces', 'users'].includes(path) || rootsOf(places).some(root => root.prefix === prefix)) return true
  return /^workspaces\/[^/]+\/(records|journal)$|^shared\/[^/]+$/.test(path)
}

export interface Crumb {
  readonly label: string
  /** The path without a slash at the end. */
  readonly path: string
}

/** Returns the folders on the way to a path, and the path itself as the last one, with their plain names. */
export function crumbsOf(places: Places, path: string): Crumb[] {
  const segments = path.split('/').filter(segment => segment !== '')
  const crumbs: Crumb[] = []
  for (let count = 1; count <= segments.length; count++) {
    const at = segments.slice(0, count).join('/')
    const label = labelOf(places, at)
    if (label !== null) crumbs.push({ label, path: at })
  }
  return crumbs
}

/** Returns the name of a folder or object. Null for a folder that only groups roots, such as `org`. */
export function labelOf(places: Places, path: string): string | null {
  if (path === 'org' || path === 'workspaces' || path === 'users') return null
  const root = rootsOf(places).find(({ prefix }) => prefix === `${path}/`)
  if (root !== undefined) return root.label
  const [, own, part] = /^workspaces\/([^/]+)\/(records|journal)$/.exec(path) ?? []
  if (own !== undefined) return part === 'records' ? text.roots.recordsOfTeam : text.roots.journalOfTeam
  const [, workspace] = /^workspaces\/([^/]+)$/.exec(path) ?? []
  if (workspace !== undefined) return text.roots.workspace(workspace)
  return path.slice(path.lastIndexOf('/') + 1)
}

/** Returns the folder of a path, with its slash. Empty at the top. */
export const folderOf = (path: string): string => path.slice(0, path.replace(/\/$/, '').lastIndexOf('/') + 1)

/** Returns the last segment of a path. */
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** Returns the prefixes of all folders on the way to a path, the outermost first. */
export function foldersAbove(path: string): string[] {
  const segments = path.split('/').slice(0, -1)
  return segments.map((_, place) => `${segments.slice(0, place + 1).join('/')}/`)
}

const markdownName = /\.(md|markdown|mdx)$|(^|\/)[^./]+$/i

/** Returns whether the name says that the text is Markdown. A name without an ending is a note, too. */
export const isMarkdownName = (path: string): boolean => markdownName.test(path)

/** Returns the key that a relative link of an object leads to. Null for an address of another kind. */
export function linkedKey(from: string, address: string): string | null {
  if (/^[a-z][a-z0-9+.-]*:/i.test(address) || address.startsWith('//') || address.startsWith('#')) return null
  const [path = ''] = address.split(/[?#]/)
  const base = new URL(`https://memory.invalid/${folderOf(from).split('/').map(encodeURIComponent).join('/')}`)
  try {
    const key = decodeURIComponent(new URL(path, base).pathname.slice(1))
    return key === '' ? null : key
  } catch {
    return null
  }
}
