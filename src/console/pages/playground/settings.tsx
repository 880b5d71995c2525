import { Fold } from '../../ui/forms/choices.tsx'
import { Field, TextField } from '../../ui/forms/field.tsx'
import { faultsOf, noSettings, type Settings } from './run/conversation.ts'
import { text } from './text.ts'

interface SettingsFoldProps {
  readonly value: Settings
  readonly onChange: (value: Settings) => void
}

/** What most calls leave as it is: the system message and two parameters. */
export function SettingsFold({ value, onChange }: SettingsFoldProps) {
  const set = <K extends keyof Settings>(name: K, next: string): void => onChange({ ...value, [name]: next })
  const faults = faultsOf(value)
  const isChanged = Object.keys(noSettings).some(name => value[name as keyof Settings].trim() !== '')
  return (
    <Fold title={text.settings} {...(isChanged ? { hint: text.settingsSet } : {})}>
      <Field label={text.system}>
        {described => (
          <textarea
            {...described}
            className="input play-system"
            rows={2}
            maxLength={100_000}
            placeholder={text.systemPlaceholder}
            value={value.system}
            onChange={event => set('system', event.target.value)}
          />
        )}
      </Field>
      <div className="play-parameters">
        <TextField
          label={text.temperature}
          hint={text.temperatureHint}
          inputMode="decimal"
          placeholder={text.defaultValue}
          value={value.temperature}
          error={faults.temperature ? text.temperatureError : null}
          onChange={event => set('temperature', event.target.value)}
        />
        <TextField
          label={text.maxTokens}
          hint={text.maxTokensHint}
          inputMode="numeric"
          placeholder={text.defaultValue}
          value={value.maxTokens}
          error={faults.maxTokens ? text.maxTokensError : null}
          onChange={event => set('maxTokens', event.target.value)}
        />
      </div>
    </Fold>
  )
}
