import { createContext, type ReactNode, useContext } from 'react'
import type { ReplyOf } from '../api/call.ts'
import { setDisplayCurrency } from '../ui/format/numbers.ts'

/** The signed-in person, with the organisation and the role of the session. */
export type Me = ReplyOf<'me'>

const MeContext = createContext<Me | null>(null)

export function MeProvider({ me, children }: { readonly me: Me; readonly children: ReactNode }) {
  const { display_currency: currency, display_rate: rate } = me.org
  // Amounts are formatted below this provider only, so they have the currency from the first time on.
  setDisplayCurrency(currency === null || rate === null ? null : { currency, rate: rate.rate })
  return <MeContext value={me}>{children}</MeContext>
}

/** Returns who is signed in. Every page is drawn below the provider. */
export function useMe(): Me {
  const me = useContext(MeContext)
  if (me === null) throw new Error('useMe needs a page of the shell')
  return me
}

const ranks = { member: 0, admin: 1, owner: 2 } as const

/** Returns whether the person has at least this role, so that an act which the gateway would refuse is not offered. */
export const hasRole = (me: Me, role: keyof typeof ranks): boolean => ranks[me.role] >= ranks[role]
