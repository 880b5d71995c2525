import { Icon } from '../../ui/icon.tsx'
import { Menu, MenuItem, MenuLine } from '../../ui/overlays/menu.tsx'
import { text } from './text.ts'
import type { ApiKey } from './use-keys.ts'

/** What a person can do with a key. */
export type KeyAct = 'rotate' | 'disable' | 'enable' | 'revoke'

interface KeyActsProps {
  readonly apiKey: ApiKey
  readonly isAdmin: boolean
  readonly isOwn: boolean
  readonly onAct: (act: KeyAct) => void
}

/** Returns the acts that the gateway would allow to the person. */
export function actsOf({ apiKey, isAdmin, isOwn }: Omit<KeyActsProps, 'onAct'>): readonly KeyAct[] {
  const mayRotate = isOwn || (isAdmin && apiKey.owner === null)
  return [
    ...(mayRotate ? (['rotate'] as const) : []),
    ...(isAdmin ? [apiKey.enabled && apiKey.state !== 'disabled_inactive' ? ('disable' as const) : ('enable' as const), 'revoke' as const] : []),
  ]
}

/** The menu of a row. A person who may do nothing gets none. */
export function KeyActs({ onAct, ...props }: KeyActsProps) {
  const acts = actsOf(props)
  if (acts.length === 0) return null
  return (
    <Menu label={`Acts of ${props.apiKey.name}`} trigger={<Icon name="more" />}>
      {acts.includes('rotate') && (
        <MenuItem icon="rotate" onClick={() => onAct('rotate')}>
          {text.rotate}…
        </MenuItem>
      )}
      {acts.includes('disable') && (
        <MenuItem icon="pause" onClick={() => onAct('disable')}>
          {text.disable}
        </MenuItem>
      )}
      {acts.includes('enable') && (
        <MenuItem icon="play" onClick={() => onAct('enable')}>
          {text.enable}
        </MenuItem>
      )}
      {acts.includes('revoke') && <MenuLine />}
      {acts.includes('revoke') && (
        <MenuItem icon="trash" isDanger onClick={() => onAct('revoke')}>
          {text.revoke}…
        </MenuItem>
      )}
    </Menu>
  )
}
