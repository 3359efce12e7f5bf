"""PostgreSQL 15 and newer, through asyncpg."""
