/** Clouds name the account in their refusals. On the credential of the operator a caller must not learn the account. */
import type { Provider } from '../provider.ts'

/** The values of an address that name an account. A region or a location does not. */
const names = ['resource', 'project'] as const
/** A shorter name is not searched for: it would spoil the text. */
const nameMinChars = 6
/** The number of an account of AWS in the name of a resource. In a URL the colons are escaped. */
const accountInArn = /\b(arn(?:(?::|%3a)[a-z0-9-]{0,40}){3}(?::|%3a))\d{12}\b/gi

/** Returns a text of a provider without the names and numbers of the account at the cloud. */
export function withoutAccount(text: string, { place }: Pick<Provider, 'place'>): string {
  let left = text
  for (const name of names) {
    const value = place?.[name]
    if (value !== undefined && value.length >= nameMinChars) left = left.replaceAll(value, '[…]')
  }
  return left.replace(accountInArn, '$1[…]')
}
