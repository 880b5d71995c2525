import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { Facts } from '../../ui/data/facts.tsx'
import { exactTime } from '../../ui/format/dates.ts'
import { Button } from '../../ui/forms/button.tsx'
import { RadioCards } from '../../ui/forms/choices.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { InactivityPanel, OrgNamePanel, OwnNamePanel } from './names-panel.tsx'
import { SessionsPanel } from './sessions-panel.tsx'
import './settings.css'
import { SignInPanels } from './sign-in-panel.tsx'
import { text } from './text.ts'

/** The settings of the organisation that have no page of their own, and those of the person. Members see their own. */
export function SettingsPage() {
  const me = useMe()
  const isAdmin = hasRole(me, 'admin')
  const owners = useOwners()
  return (
    <Page title={text.title} intro={isAdmin ? text.intro : `${text.introMember} ${text.members(owners)}`}>
      <div className="settings-panels">
        <OwnNamePanel key={me.user.name} />
        {hasRole(me, 'owner') && <OrgNamePanel key={me.org.name} />}
        {isAdmin && (
          <>
            <CurrencyPanel />
            <ZonePanel />
            <SignInPanels />
            <InactivityPanel key={me.org.key_inactivity_days} />
          </>
        )}
      </div>
      <SessionsPanel />
    </Page>
  )
}

/** The currency that is shown beside rupees. */
function CurrencyPanel() {
  const { display_currency: saved, display_rate: rate } = useMe().org
  const [kind, setKind] = useState<'none' | 'other'>(saved === null ? 'none' : 'other')
  const [typed, setTyped] = useState(saved ?? '')
  const code = typed.trim().toUpperCase()
  const currency = kind === 'none' ? null : code
  const isValid = currency === null || /^[A-Z]{3}$/.test(currency)
  const save = useMutation({
    mutationFn: () => api('setDisplayCurrency', { body: { currency } }),
    onSuccess: async reply => {
      await invalidate('me')
      toast(text.currencySaved(reply.currency))
    },
  })
  return (
    <Panel title={text.currencyTitle}>
      <form
        className="stack-5"
        noValidate
        onSubmit={event => {
          event.preventDefault()
          if (isValid && currency !== saved && !save.isPending) save.mutate()
        }}
      >
        <p className="quiet">{text.currencyAbout}</p>
        <RadioCards
          label={text.shown}
          value={kind}
          options={[
            { value: 'none', label: text.rupeesOnly },
            { value: 'other', label: text.other },
          ]}
          onChange={setKind}
        />
        {kind === 'other' && (
          <TextField
            label={text.currency}
            hint={text.currencyHint}
            maxLength={3}
            value={typed}
            error={typed !== '' && !isValid ? text.currencyError : null}
            onChange={event => setTyped(event.target.value)}
          />
        )}
        {saved !== null && currency === saved && <p className="quiet">{rate === null ? text.noRate : text.rate(saved, rate.rate, rate.rate_as_of)}</p>}
        {save.error && <InlineError error={apiErrorOf(save.error)} />}
        <div>
          <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isValid || currency === saved}>
            {text.save}
          </Button>
        </div>
      </form>
    </Panel>
  )
}

/** The time zone of budgets. Only owners change it. */
function ZonePanel() {
  const zone = useQuery(apiQuery('budgetZone'))
  return (
    <Panel title={text.zoneTitle}>
      <Loaded query={zone}>{data => <ZoneForm key={data.time_zone} zone={data} />}</Loaded>
    </Panel>
  )
}

function ZoneForm({ zone }: { readonly zone: ReplyOf<'budgetZone'> }) {
  const isOwner = hasRole(useMe(), 'owner')
  const [typed, setTyped] = useState(zone.time_zone)
  const name = typed.trim()
  const save = useMutation({
    mutationFn: () => api('setBudgetZone', { body: { time_zone: name } }),
    onSuccess: async reply => {
      await invalidate('budgetZone', 'orgBudgets')
      toast(text.zoneSaved(reply.time_zone))
    },
  })
  const isChanged = name !== '' && name !== zone.time_zone
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (isChanged && !save.isPending) save.mutate()
      }}
    >
      <p className="quiet">{text.zoneAbout}</p>
      <Facts facts={zone.periods.map(({ period, resets_at: at }) => [text.ends[period], exactTime(at)] as const)} />
      <TextField
        label={text.zone}
        hint={isOwner ? text.zoneHint : text.ownersOnly}
        value={typed}
        disabled={!isOwner}
        onChange={event => setTyped(event.target.value)}
      />
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
      {isOwner && (
        <div>
          <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isChanged}>
            {text.save}
          </Button>
        </div>
      )}
    </form>
  )
}
