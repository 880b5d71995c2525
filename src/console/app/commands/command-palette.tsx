import { type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from 'react'
import { Kbd } from '../../ui/forms/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { type Command, openWindow } from './command-list.ts'
import { fits } from './fits.ts'
import { useFoundAgents } from './use-found-agents.ts'

/** A window in which a person types what they want to do. */
export function CommandPalette({ commands }: { readonly commands: readonly Command[] }) {
  const [text, setText] = useState('')
  const [active, setActive] = useState(0)
  const dialog = useRef<HTMLDialogElement>(null)
  const listId = useId()
  const agents = useFoundAgents(text)
  const shown = [...commands.filter(command => fits(`${command.group} ${command.label}`, text)), ...agents]
  // The event of the closed dialog may come after another window was opened.
  const close = (): void => {
    if (openWindow.get() === 'palette') openWindow.set('none')
  }
  useLayoutEffect(() => {
    const element = dialog.current
    const before = document.activeElement
    element?.showModal()
    return () => {
      element?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true })
    }
  }, [])
  const run = (command: Command | undefined): void => {
    if (!command) return
    close()
    command.run()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') run(shown[active])
    else if (event.key === 'ArrowDown') setActive(Math.min(active + 1, shown.length - 1))
    else if (event.key === 'ArrowUp') setActive(Math.max(active - 1, 0))
    else return
    event.preventDefault()
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it; the click is on the backdrop.
    <dialog ref={dialog} className="palette" aria-label="Commands" onClose={close} onClick={event => event.target === dialog.current && close()}>
      <div className="palette-box">
        <Icon name="search" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={shown[active] && `${listId}-${active}`}
          aria-label="Search commands and pages"
          placeholder="A page, an agent, or what to do"
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={event => {
            setText(event.target.value)
            setActive(0)
          }}
          onKeyDown={onKeyDown}
        />
        <Kbd>Esc</Kbd>
      </div>
      <div className="palette-list" id={listId} role="listbox" aria-label="Commands">
        {shown.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the keys of the list.
          // biome-ignore lint/a11y/useFocusableInteractive: focus stays in the input, which names the active option.
          <div
            key={command.id}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === active}
            className="palette-item"
            ref={element => {
              if (index === active) element?.scrollIntoView({ block: 'nearest' })
            }}
            onPointerMove={() => setActive(index)}
            onClick={() => run(command)}
          >
            <Icon name={command.icon} />
            <span className="palette-label">{command.label}</span>
            <span className="palette-group">{command.group}</span>
            {command.keys && <Kbd>{command.keys}</Kbd>}
          </div>
        ))}
      </div>
      {shown.length === 0 && <p className="palette-none">Nothing fits “{text}”.</p>}
    </dialog>
  )
}
