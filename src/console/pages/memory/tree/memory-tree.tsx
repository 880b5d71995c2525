import { useQueries } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import type { ReplyOf } from '../../../api/call.ts'
import { Tree, type TreeNode } from '../../../ui/data/tree.tsx'
import { fixedChildren, folderOf, foldersAbove, nameOf, type Places, rootsOf } from '../places.ts'
import { text } from '../text.ts'
import { levelQuery, levelSize } from '../use-memory.ts'

/** Entries of a folder that the tree shows at most. The list of the folder has all of them. */
const levelMax = 1_000

interface MemoryTreeProps {
  readonly places: Places
  /** The path that the page shows, and whether it is a folder. */
  readonly path: string
  readonly isFolder: boolean
  readonly onOpen: (path: string) => void
}

type Level = ReplyOf<'listConsole'>

/** The folders and objects that the person may read. A folder is read when it opens. */
export function MemoryTree({ places, path, isFolder, onOpen }: MemoryTreeProps) {
  const [asked, setAsked] = useState<ReadonlyMap<string, number>>(() => new Map())
  const above = useMemo(() => foldersAbove(isFolder && path !== '' ? `${path}/` : path), [path, isFolder])
  const wanted = [...new Set([...above, ...asked.keys()])].filter(prefix => isListed(places, prefix))
  const levels = useQueries({ queries: wanted.map(prefix => levelQuery(prefix, asked.get(prefix) ?? levelSize)) })
  const byPrefix = new Map(wanted.map((prefix, place) => [prefix, levels[place]] as const))
  const ask = (prefix: string, limit?: number): void => setAsked(before => new Map(before).set(prefix, limit ?? before.get(prefix) ?? levelSize))

  const childrenOf = (prefix: string): readonly TreeNode[] | null => {
    const fixed = fixedChildren(places, prefix)
    if (fixed !== null)
      return fixed.length === 0
        ? [leaf(`none:${prefix}`, text.none)]
        : fixed.map(root => ({ id: root.prefix, label: root.label, icon: 'folder', children: childrenOf(root.prefix) }))
    const level = byPrefix.get(prefix)
    if (level === undefined) return null
    if (level.isError && level.data === undefined) return [leaf(`again:${prefix}`, text.failed)]
    if (level.data === undefined) return [leaf(`wait:${prefix}`, text.loading)]
    const nodes = nodesOf(level.data, childrenOf)
    if (nodes.length === 0) return [leaf(`none:${prefix}`, text.none)]
    return level.data.next_cursor ? [...nodes, leaf(`more:${prefix}`, text.more)] : nodes
  }
  const select = (id: string): void => {
    const [, act, prefix = ''] = /^(none|again|wait|more):(.*)$/s.exec(id) ?? []
    if (act === undefined) onOpen(id.replace(/\/$/, ''))
    else if (act === 'again') void byPrefix.get(prefix)?.refetch()
    else if (act === 'more') {
      const limit = (asked.get(prefix) ?? levelSize) * 2
      if (limit > levelMax) onOpen(prefix.replace(/\/$/, ''))
      else ask(prefix, limit)
    }
  }
  const nodes = rootsOf(places).map(({ prefix, label, icon }): TreeNode => ({ id: prefix, label, icon, children: childrenOf(prefix) }))
  return (
    <Tree
      label={text.tree}
      nodes={nodes}
      selected={path === '' ? null : isFolder ? `${path}/` : path}
      opened={above}
      onSelect={select}
      onExpand={prefix => ask(prefix)}
    />
  )
}

const leaf = (id: string, label: string): TreeNode => ({ id, label })

/** Returns whether the gateway lists a prefix. The others only group roots, or have folders that are always there. */
const isListed = (places: Places, prefix: string): boolean =>
  fixedChildren(places, prefix) === null && !['org/', 'workspaces/', 'users/'].includes(prefix) && !/^workspaces\/[^/]+\/$/.test(prefix)

/** Returns the nodes of a level in the order of their names. */
function nodesOf({ keys, prefixes = [] }: Level, childrenOf: (prefix: string) => readonly TreeNode[] | null): TreeNode[] {
  const folders = prefixes.map((prefix): TreeNode => ({ id: prefix, label: nameOf(prefix.slice(0, -1)), icon: 'folder', children: childrenOf(prefix) }))
  const objects = keys.map(({ key }): TreeNode => ({ id: key, label: key.slice(folderOf(key).length), icon: 'file' }))
  return [...folders, ...objects]
}
