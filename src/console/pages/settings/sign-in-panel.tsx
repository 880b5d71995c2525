import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { Button, IconButton } from '../../ui/forms/button.tsx'
import { RadioCards } from '../../ui/forms/choices.tsx'
import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { SelectField, TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Panel } from '../../ui/layout/panel.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { signInText as text } from './sign-in-text.ts'

type Issuer = ReplyOf<'signInRules'>['issuers'][number]
type Group = Issuer['groups'][number]
type Role = Issuer['default_role']
type Body = CallOptions<'setSignInRules'>['body']

const groupsMax = 200
const foundMax = 20

/** The issuers at which people of the organisation sign in, each in a panel of its own. There is nothing to see without one. */
export function SignInPanels() {
  const rules = useQuery(apiQuery('signInRules'))
  return (rules.data?.issuers ?? []).map(issuer => <IssuerPanel key={issuer.id} issuer={issuer} />)
}

function IssuerPanel({ issuer }: { readonly issuer: Issuer }) {
  const isOwner = hasRole(useMe(), 'owner')
  return (
    <Panel title={text.title(issuer.name)}>
      <div className="stack-5">
        <p className="sign-in-issuer">
          <img src={issuer.icon} alt="" width={20} height={20} />
          <span>{text.about(issuer.name, issuer.domains)}</span>
        </p>
        {isOwner ? <RulesForm key={JSON.stringify([issuer.default_role, issuer.groups])} issuer={issuer} /> : <RulesList issuer={issuer} />}
      </div>
    </Panel>
  )
}

function RulesList({ issuer }: { readonly issuer: Issuer }) {
  return (
    <>
      <p>{text.joinsAs(issuer.default_role)}</p>
      <ul className="sign-in-groups">
        {issuer.groups.map(group => (
          <li key={group.group}>{text.gives(group)}</li>
        ))}
      </ul>
      <p className="quiet">{text.ownersOnly}</p>
    </>
  )
}

/** The form for the rules. The whole list is sent, because one sign-in applies all of it. */
function RulesForm({ issuer }: { readonly issuer: Issuer }) {
  const [role, setRole] = useState<Role>(issuer.default_role)
  const [groups, setGroups] = useState<readonly Group[]>(issuer.groups)
  const save = useMutation({
    mutationFn: (body: Body) => api('setSignInRules', { path: { provider: issuer.id }, body }),
    onSuccess: async () => {
      await invalidate('signInRules')
      toast(text.saved(issuer.name))
    },
  })
  const isChanged = role !== issuer.default_role || JSON.stringify(groups) !== JSON.stringify(issuer.groups)
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (isChanged && !save.isPending) save.mutate({ default_role: role, groups: [...groups] })
      }}
    >
      <RadioCards
        label={text.joins}
        value={role}
        onChange={setRole}
        options={[
          { value: 'member', label: text.member },
          { value: 'admin', label: text.admin },
        ]}
      />
      {issuer.states_groups ? <GroupRules groups={groups} onChange={setGroups} /> : <p className="quiet">{text.noGroups}</p>}
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
      <div>
        <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isChanged}>
          {text.save}
        </Button>
      </div>
    </form>
  )
}

function GroupRules({ groups, onChange }: { readonly groups: readonly Group[]; readonly onChange: (groups: readonly Group[]) => void }) {
  const [name, setName] = useState('')
  const [role, setRole] = useState<'' | Role>('')
  const [workspaces, setWorkspaces] = useState<readonly ComboOption[]>([])
  const isKnown = groups.some(({ group }) => group === name)
  const mayAdd = name !== '' && !isKnown && (role !== '' || workspaces.length > 0) && groups.length < groupsMax
  const add = (): void => {
    onChange([...groups, { group: name, role: role === '' ? null : role, workspace_ids: workspaces.map(({ value }) => Number(value)) }])
    setName('')
    setRole('')
    setWorkspaces([])
  }
  return (
    <fieldset className="stack-4">
      <legend>{text.groups}</legend>
      <p className="quiet">{text.groupsAbout}</p>
      <ul className="sign-in-groups">
        {groups.map(group => (
          <li key={group.group}>
            <span>{text.gives(group)}</span>
            <IconButton icon="close" label={text.remove(group.group)} type="button" onClick={() => onChange(groups.filter(each => each !== group))} />
          </li>
        ))}
      </ul>
      <TextField
        label={text.group}
        hint={text.groupHint}
        maxLength={256}
        value={name}
        error={isKnown ? text.known : null}
        onChange={event => setName(event.target.value)}
      />
      <SelectField
        label={text.role}
        value={role}
        onChange={event => setRole(event.target.value === 'admin' || event.target.value === 'member' ? event.target.value : '')}
      >
        <option value="">{text.noRole}</option>
        <option value="member">{text.member}</option>
        <option value="admin">{text.admin}</option>
      </SelectField>
      <Combobox label={text.workspaces} name="sign-in-workspaces" isMultiple value={workspaces} onChange={setWorkspaces} search={findWorkspaces} />
      <div>
        <Button type="button" disabled={!mayAdd} onClick={add}>
          {text.add}
        </Button>
      </div>
    </fieldset>
  )
}

async function findWorkspaces(typed: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const q = typed.trim()
  const { workspaces } = await api('listWorkspaces', { query: { state: 'active', limit: foundMax, ...(q === '' ? {} : { q }) }, signal })
  return workspaces.map(({ id, name }) => ({ value: String(id), label: name }))
}
