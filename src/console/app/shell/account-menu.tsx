import { useStore } from '../../api/store.ts'
import { Menu, MenuHeading, MenuItem, MenuLine } from '../../ui/overlays/menu.tsx'
import { openWindow } from '../commands/command-list.ts'
import type { Me } from '../me.tsx'
import { grouping, theme } from '../preferences.ts'
import { signOut } from './sign-out.ts'

const themes = [
  { value: 'system', label: 'As the system', icon: 'screen' },
  { value: 'light', label: 'Light', icon: 'sun' },
  { value: 'dark', label: 'Dark', icon: 'moon' },
] as const

const groupings = [
  { value: 'indian', label: '12,34,567' },
  { value: 'international', label: '1,234,567' },
] as const

/** The signed-in person, with what they can choose for this browser. */
export function AccountMenu({ me }: { readonly me: Me }) {
  const chosenTheme = useStore(theme)
  const chosenGrouping = useStore(grouping)
  const name = me.user.name ?? me.user.email ?? 'You'
  return (
    <Menu
      label={`Account: ${name}`}
      align="start"
      triggerClass="account-button"
      trigger={
        <>
          <span className="avatar" aria-hidden="true">
            {[...name][0]?.toUpperCase()}
          </span>
          <span className="account-name">
            {name}
            <span className="quiet">{me.role}</span>
          </span>
        </>
      }
    >
      <MenuHeading>{me.user.email ?? name}</MenuHeading>
      <MenuLine />
      <MenuHeading>Theme</MenuHeading>
      {themes.map(({ value, label, icon }) => (
        <MenuItem key={value} icon={icon} isChecked={chosenTheme === value} onClick={() => theme.set(value)}>
          {label}
        </MenuItem>
      ))}
      <MenuHeading>Numbers</MenuHeading>
      {groupings.map(({ value, label }) => (
        <MenuItem key={value} isChecked={chosenGrouping === value} onClick={() => grouping.set(value)}>
          <span className="tabular">{label}</span>
        </MenuItem>
      ))}
      <MenuLine />
      <MenuItem icon="info" onClick={() => openWindow.set('help')}>
        Keyboard shortcuts
      </MenuItem>
      <MenuItem icon="leave" onClick={() => void signOut()}>
        Sign out
      </MenuItem>
    </Menu>
  )
}
