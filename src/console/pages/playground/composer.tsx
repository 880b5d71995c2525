import { type KeyboardEvent, type Ref, useId } from 'react'
import { Button } from '../../ui/forms/button.tsx'
import type { Settings } from './run/conversation.ts'
import { SettingsFold } from './settings.tsx'
import { text } from './text.ts'

interface ComposerProps {
  readonly prompt: string
  readonly onPrompt: (prompt: string) => void
  readonly settings: Settings
  readonly onSettings: (settings: Settings) => void
  readonly isRunning: boolean
  /** Why nothing can be sent. Null: it can. */
  readonly blocked: string | null
  readonly onSend: () => void
  readonly onStop: () => void
  readonly inputRef: Ref<HTMLTextAreaElement>
}

const promptCharsMax = 200_000

/** The field for a message, with Send or Stop. */
export function Composer({ prompt, onPrompt, settings, onSettings, isRunning, blocked, onSend, onStop, inputRef }: ComposerProps) {
  const id = useId()
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault()
      if (!isRunning) onSend()
    } else if (event.key === 'Escape' && isRunning) {
      event.preventDefault()
      onStop()
    }
  }
  return (
    <form
      className="play-composer"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (!isRunning) onSend()
      }}
    >
      <SettingsFold value={settings} onChange={onSettings} />
      <div className="play-box">
        <label className="visually-hidden" htmlFor={id}>
          {text.message}
        </label>
        <textarea
          ref={inputRef}
          id={id}
          rows={2}
          maxLength={promptCharsMax}
          placeholder={text.messagePlaceholder}
          value={prompt}
          onChange={event => onPrompt(event.target.value)}
          onKeyDown={onKeyDown}
        />
        <div className="play-send">
          <p className="quiet">{blocked ?? text.keys}</p>
          {isRunning ? (
            <Button look="danger" icon="stop" onClick={onStop}>
              {text.stop}
            </Button>
          ) : (
            <Button look="primary" type="submit" disabled={prompt.trim() === '' || blocked !== null}>
              {text.send}
            </Button>
          )}
        </div>
      </div>
    </form>
  )
}
