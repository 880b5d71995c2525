import { SelectField, TextField } from '../../../ui/forms/field.tsx'
import { text } from '../text.ts'
import { githubIssuer, gitlabIssuer, type Platform, platforms, refKinds, type Workload } from './platforms.ts'

interface PlatformFieldsProps {
  readonly value: Workload
  readonly onChange: (changes: Partial<Workload>) => void
}

/** The platform of a workload, and what a person knows of it there. */
export function PlatformFields({ value, onChange }: PlatformFieldsProps) {
  return (
    <>
      <SelectField label={text.platform} value={value.platform} onChange={event => onChange({ platform: event.target.value as Platform })}>
        {platforms.map(platform => (
          <option key={platform} value={platform}>
            {text.platforms[platform]}
          </option>
        ))}
      </SelectField>
      {value.platform === 'github' && <Repository value={value} onChange={onChange} label={text.fields.repository} hint={text.fields.repositoryHint} />}
      {value.platform === 'gitlab' && (
        <>
          <Repository value={value} onChange={onChange} label={text.fields.project} hint={text.fields.projectHint} />
          <Issuer value={value} onChange={onChange} hint={text.fields.gitlabIssuer} placeholder={gitlabIssuer} />
        </>
      )}
      {value.platform === 'kubernetes' && (
        <>
          <Issuer value={value} onChange={onChange} hint={text.fields.clusterIssuer} placeholder="https://kubernetes.default.svc" />
          <TextField label={text.fields.namespace} maxLength={63} value={value.namespace} onChange={event => onChange({ namespace: event.target.value })} />
          <TextField label={text.fields.account} maxLength={253} value={value.account} onChange={event => onChange({ account: event.target.value })} />
        </>
      )}
      {value.platform === 'other' && (
        <>
          <Issuer value={value} onChange={onChange} hint={text.fields.issuerHint} placeholder={githubIssuer} />
          <TextField
            label={text.fields.subject}
            hint={text.fields.subjectHint}
            maxLength={500}
            value={value.subject}
            onChange={event => onChange({ subject: event.target.value })}
          />
        </>
      )}
    </>
  )
}

function Issuer({ value, onChange, hint, placeholder }: PlatformFieldsProps & { readonly hint: string; readonly placeholder: string }) {
  return (
    <TextField
      label={text.fields.issuer}
      hint={hint}
      placeholder={placeholder}
      inputMode="url"
      maxLength={500}
      value={value.issuer}
      onChange={event => onChange({ issuer: event.target.value })}
    />
  )
}

function Repository({ value, onChange, label, hint }: PlatformFieldsProps & { readonly label: string; readonly hint: string }) {
  const kinds = refKinds.filter(kind => kind !== 'environment' || value.platform === 'github')
  return (
    <>
      <TextField
        label={label}
        hint={hint}
        placeholder="acme/app"
        maxLength={300}
        value={value.repository}
        onChange={event => onChange({ repository: event.target.value })}
      />
      <SelectField
        label={text.fields.narrow}
        value={value.refKind}
        onChange={event => onChange({ refKind: kinds.find(kind => kind === event.target.value) ?? 'branch' })}
      >
        {kinds.map(kind => (
          <option key={kind} value={kind}>
            {text.fields.narrows[kind]}
          </option>
        ))}
      </SelectField>
      {value.refKind !== 'any' && (
        <TextField
          label={value.refKind === 'branch' ? text.fields.branch : text.fields.environment}
          maxLength={150}
          value={value.ref}
          onChange={event => onChange({ ref: event.target.value })}
        />
      )}
    </>
  )
}
