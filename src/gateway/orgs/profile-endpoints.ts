export const profileEndpoints = {}
