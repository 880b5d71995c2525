import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { Icon, type IconName } from '../icon.tsx'

/** A node of a tree. `children` is undefined for a leaf, and null for a folder whose content is not read yet. */
export interface TreeNode {
  readonly id: string
  readonly label: string
  readonly icon?: IconName
  readonly children?: readonly TreeNode[] | null
  /** What is shown at the end of the line, such as a budget. */
  readonly detail?: ReactNode
}

interface TreeProps {
  readonly label: string
  readonly nodes: readonly TreeNode[]
  readonly selected: string | null
  readonly onSelect: (id: string) => void
  /** Is called when a folder opens, so that its content can be read. */
  readonly onExpand?: (id: string) => void
  /** Folders that are open at first. A folder that is added later opens then. Default: none. */
  readonly opened?: readonly string[]
}

interface Line {
  readonly node: TreeNode
  readonly level: number
  readonly parent: string | null
  readonly place: number
  readonly siblings: number
}

function linesOf(nodes: readonly TreeNode[], open: ReadonlySet<string>, level = 1, parent: string | null = null): Line[] {
  return nodes.flatMap((node, index) => [
    { node, level, parent, place: index + 1, siblings: nodes.length },
    ...(node.children && open.has(node.id) ? linesOf(node.children, open, level + 1, node.id) : []),
  ])
}

/** A tree with the keys of its pattern: up and down move, right and left open and close, Enter selects. */
export function Tree({ label, nodes, selected, onSelect, onExpand, opened = [] }: TreeProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(opened))
  const [focused, setFocused] = useState(selected ?? nodes[0]?.id ?? '')
  const tree = useRef<HTMLDivElement>(null)
  const lines = linesOf(nodes, open)
  const asked = opened.join('\n')
  useEffect(() => {
    if (asked !== '') setOpen(before => new Set([...before, ...asked.split('\n')]))
  }, [asked])
  useEffect(() => {
    if (selected !== null) setFocused(selected)
  }, [selected])
  // A line that is not read yet, or whose folder is closed, cannot take the focus.
  const reachable = lines.some(({ node }) => node.id === focused) ? focused : lines[0]?.node.id
  const toggle = (id: string, isOpen: boolean): void => {
    const next = new Set(open)
    if (isOpen) next.add(id)
    else next.delete(id)
    setOpen(next)
    if (isOpen) onExpand?.(id)
  }
  const focus = (line: Line | undefined): void => {
    if (!line) return
    setFocused(line.node.id)
    tree.current?.querySelector<HTMLElement>(`[data-id="${CSS.escape(line.node.id)}"]`)?.focus()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const at = lines.findIndex(({ node }) => node.id === reachable)
    const line = lines[at]
    if (!line) return
    const { id, children } = line.node
    const isFolder = children !== undefined
    if (event.key === 'ArrowDown') focus(lines[at + 1])
    else if (event.key === 'ArrowUp') focus(lines[at - 1])
    else if (event.key === 'Home') focus(lines[0])
    else if (event.key === 'End') focus(lines.at(-1))
    else if (event.key === 'ArrowRight' && isFolder) open.has(id) ? focus(lines[at + 1]) : toggle(id, true)
    else if (event.key === 'ArrowLeft') open.has(id) ? toggle(id, false) : focus(lines.find(({ node }) => node.id === line.parent))
    else if (event.key === 'Enter' || event.key === ' ') onSelect(id)
    else return
    event.preventDefault()
  }
  return (
    <div ref={tree} role="tree" aria-label={label} className="tree" onKeyDown={onKeyDown}>
      {lines.map(({ node, level, place, siblings }) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys of its lines.
        <div
          key={node.id}
          data-id={node.id}
          role="treeitem"
          aria-level={level}
          aria-posinset={place}
          aria-setsize={siblings}
          aria-expanded={node.children === undefined ? undefined : open.has(node.id)}
          aria-selected={node.id === selected}
          tabIndex={node.id === reachable ? 0 : -1}
          className="tree-line"
          style={{ paddingInlineStart: `${level * 1.125 - 0.5}rem` }}
          onClick={event => {
            setFocused(node.id)
            const isArrow = event.target instanceof Element && event.target.closest('.tree-arrow') !== null && node.children !== undefined
            // The arrow only opens and closes. The name opens a folder, and closes the one that is selected.
            if (node.children !== undefined) toggle(node.id, isArrow || node.id === selected ? !open.has(node.id) : true)
            if (!isArrow) onSelect(node.id)
          }}
        >
          <span className="tree-arrow">{node.children !== undefined && <Icon name={open.has(node.id) ? 'down' : 'right'} size={14} />}</span>
          {node.icon && <Icon name={node.icon} />}
          <span className="tree-label">{node.label}</span>
          {node.detail}
        </div>
      ))}
    </div>
  )
}
