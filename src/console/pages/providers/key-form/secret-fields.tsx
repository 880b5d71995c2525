import { RadioCards } from '../../../ui/forms/choices.tsx'
import { TextAreaField, TextField } from '../../../ui/forms/field.tsx'
import type { Accepting } from '../search.ts'
import { credentialFields, formText } from '../text.ts'
import { fileFields, type KeyDraft, kindOf } from './draft.ts'

interface SecretFieldsProps {
  readonly provider: Accepting
  readonly draft: KeyDraft
  readonly onChange: (draft: KeyDraft) => void
}

/** The key or the credentials, and the values of the account that fill the address of a cloud. */
export function SecretFields({ provider, draft, onChange }: SecretFieldsProps) {
  const { credentials, takes_key: takesKey, values = [] } = provider
  const kind = kindOf(provider, draft)
  return (
    <>
      {values.length > 0 && (
        <div className="form-pair">
          {values.map(name => (
            <TextField
              key={name}
              label={formText.values[name] ?? name}
              hint={formText.valueHints[name]}
              maxLength={128}
              value={draft.values[name] ?? ''}
              onChange={event => onChange({ ...draft, values: { ...draft.values, [name]: event.target.value } })}
            />
          ))}
        </div>
      )}
      {credentials !== undefined && takesKey !== false && (
        <RadioCards
          label={formText.what}
          value={kind}
          options={[
            { value: 'key', label: formText.aKey, hint: formText.aKeyHint },
            { value: 'credentials', ...formText.kinds[credentials] },
          ]}
          onChange={next => onChange({ ...draft, kind: next })}
        />
      )}
      {kind === 'key' ? (
        <TextField
          label={formText.key}
          hint={formText.keyHint}
          type="password"
          autoComplete="new-password"
          value={draft.key}
          onChange={event => onChange({ ...draft, key: event.target.value })}
        />
      ) : (
        <CredentialFields provider={provider} draft={draft} onChange={onChange} />
      )}
    </>
  )
}

function CredentialFields({ provider: { credentials = 'aws' }, draft, onChange }: SecretFieldsProps) {
  if (credentials === 'google')
    return (
      <TextAreaField
        label={formText.file}
        hint={formText.fileHint}
        rows={6}
        value={draft.file}
        error={draft.file.trim() !== '' && fileFields(draft.file) === null ? formText.fileWrong : null}
        onChange={event => onChange({ ...draft, file: event.target.value })}
      />
    )
  return (
    <div className="form-pair">
      {credentialFields[credentials].map(([name, label, isSecret]) => (
        <TextField
          key={name}
          label={label}
          value={draft.fields[name] ?? ''}
          {...(isSecret ? { type: 'password', autoComplete: 'new-password' } : {})}
          onChange={event => onChange({ ...draft, fields: { ...draft.fields, [name]: event.target.value } })}
        />
      ))}
    </div>
  )
}
